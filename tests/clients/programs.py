"""Other people's clients of System One, each with the few lines that point it at a server and ask one question.

A program prints one line of JSON: the answer, and the provider's request id where the client hands it out. `B` is the
server's base URL, `W` the words it asks about, its own so that no client is answered with what another one got.
"""

from typing import NamedTuple


class Program(NamedTuple):
    """A client: what is installed for it, and what it runs. `shows_id`: it has the provider's request id."""

    name: str
    packages: tuple[str, ...]
    script: str
    shows_id: bool = False
    language: str = "python"


HEAD = {
    "python": 'import json, os\nB, W = os.environ["B"], os.environ["W"]\n'
    "def say(answer, request_id=None):\n    print(json.dumps([answer, request_id]))\n",
    "js": "const { B, W } = process.env;\n"
    "const say = (answer, id) => console.log(JSON.stringify([answer, id ?? null]));\n",
    "sh": "set -eu\n",
}
"""What stands above every script of a language."""

PROGRAMS = [
    Program(
        "typesafe-sdk",
        ("typesafe-sdk==0.7.5",),
        """
from typesafe_sdk import Noul, TypeSafeClient
with TypeSafeClient() as client:
    said = client.system_one(W, {"q": Noul(instructions="Ok?")})
say(said.nouls["q"].noul, said.request_id)
""",
        shows_id=True,
    ),
    Program(
        "@typesafe-ai/sdk",
        ("@typesafe-ai/sdk@0.6.0",),
        """
import { noul, TypeSafeClient } from "@typesafe-ai/sdk";
const asked = new TypeSafeClient().systemOne({ state: W, questions: { q: noul("Ok?") } });
const { data, requestId } = await asked.withResponse();
say(data.answers.q.noul, requestId);
""",
        shows_id=True,
        language="js",
    ),
    Program(
        "@ai-sdk/typesafe-ai",
        ("ai@7.0.173", "@ai-sdk/typesafe-ai@3.0.0", "zod@4.6.7"),
        """
import { createTypeSafeAi } from "@ai-sdk/typesafe-ai";
import { experimental_evaluate } from "ai";
const model = createTypeSafeAi({ baseURL: `${B}/v1`, apiKey: "k" }).evaluationModel("jev-latest");
const questions = { q: { type: "boolean", instructions: "Ok?" } };
const { answers, response } = await experimental_evaluate({ model, state: W, questions });
say(answers.q.probability, response.headers["x-typesafe-request-id"]);
""",
        shows_id=True,
        language="js",
    ),
    Program(
        "jev-lite",
        ("jev-lite==0.0.6",),
        """
from jev_lite import Noul, TypeSafe
said = TypeSafe(base_url=B).system_one.create(state=W, questions={"q": Noul(instructions="Ok?")})
say(said.nouls["q"].noul, said.request_id)
""",
        shows_id=True,
    ),
    Program(
        "langchain-typesafe",
        ("langchain-typesafe==0.0.1a3",),
        """
from langchain_typesafe import Noul, TypeSafeClassifier
asked = {"state": W, "questions": {"q": Noul(instructions="Ok?")}}
said = TypeSafeClassifier(base_url=B, api_key="k").invoke(asked)
say(said.nouls["q"].noul, said.request_id)
""",
        shows_id=True,
    ),
    Program(
        "pydantic-ai",
        ("pydantic-ai-slim[typesafe]==2.68.0",),
        """
from pydantic_ai import Agent
say(Agent("typesafe:jev-latest", output_type=bool, instructions="Ok?").run_sync(W).output)
""",
    ),
    Program(
        "litellm",
        ("litellm==1.110.2",),
        """
import litellm
asked = {"q": {"type": "noul", "instructions": "Ok?"}}
said = litellm.systemone(model="typesafe/jev-latest", api_base=B, api_key="k", state=W, questions=asked)
say(said.model_dump()["answers"]["q"]["noul"])
""",
    ),
    Program(
        "openrouter",
        ("openrouter==1.3.84",),
        """
from openrouter import OpenRouter
asked = {"q": {"type": "noul", "instructions": "Ok?"}}
with OpenRouter(server_url=B + "/api/v1", api_key="k") as client:
    said = client.system_one.create(model="jev-latest", state=W, questions=asked)
say(said.answers["q"].noul)
""",
    ),
    Program(
        "openrouter-decisions",
        ("openrouter==1.3.84",),
        """
from openrouter import OpenRouter
asked = {"q": {"type": "noul", "instructions": "Ok?", "criteria": {"true": "Fine", "false": "Not"}}}
with OpenRouter(api_key="k") as client:
    said = client.alpha.decisions.create(model="typesafe/jev-1.13", state=W, questions=asked, server_url=B)
say(said.answers["q"].noul)
""",
    ),
    Program(
        "openai-decisions",
        ("openai==3.57.0",),
        """
from openai import OpenAI
asked = [{"type": "predicate", "instructions": "Ok?"}]
said = OpenAI(base_url=B + "/v1", api_key="k").decisions.create(model="gpt-6-luna", input=W, questions=asked)
say(said.answers[0].probability, said._request_id)
""",
        shows_id=True,
    ),
    Program(
        "pydecide",
        ("pydecide==0.2.19",),
        """
from decide import Client, Noul
from decide.backends.typesafe import TypeSafeBackend
said = Client([TypeSafeBackend("k", base_url=B)]).decide(state={"words": W}, questions={"q": Noul("Ok?")})
say(said.nouls["q"].noul)
""",
    ),
    Program(
        "system-one",
        ("system-one[http]==0.4.0",),
        """
from system_one import HTTPConfig, SystemOne
agent = SystemOne(HTTPConfig(base_url=B, model="jev-latest", api_key="k"))
say(agent.ask(W, {"q": {"type": "noul", "instructions": "Ok?"}}).nouls["q"].noul)
""",
    ),
    Program(
        "systemone-client",
        ("systemone-client==0.1.0",),
        """
from systemone import Client, Noul
with Client(B, api_key="k", model="jev-latest") as client:
    say(client.system_one(state=W, questions={"q": Noul("Ok?")}).nouls["q"].noul)
""",
    ),
    Program(
        "judgements",
        ("judgements==0.2.1",),
        """
from judgements import TypeSafe, question
say(TypeSafe().ask(W, question("Ok?", bool)).probability)
""",
    ),
    Program(
        "semantic-operators",
        ("semantic-operators[typesafe]==0.12.0",),
        """
from semantic_operators import Boolean
from semantic_operators.providers.typesafe import TypeSafe
from typesafe_sdk import TypeSafeClient
with TypeSafeClient() as client:
    say(TypeSafe(client).ask(W, {"q": Boolean("Ok?")})["q"].probabilities["true"])
""",
    ),
    Program(
        "langgraph-jev",
        ("langgraph-jev==0.1.0",),
        """
from langgraph_jev import JevClient, boolean
with JevClient(api_key="k", base_url=B) as client:
    say(client.decide(W, {"q": boolean(instructions="Ok?")}).decisions["q"].value)
""",
    ),
    Program(
        "jev-fn",
        ("jev-fn==0.1.1",),
        """
from jev_fn import configure, jev
configure(api_key="k", base_url=B)
say(float(jev("Ok?", context=W)))
""",
    ),
    Program(
        "hunch-jev",
        ("hunch-jev==0.10.0",),
        """
import hunch
say(hunch.check(W, "Ok?"))
""",
    ),
    Program(
        "jev-trust",
        ("jev-trust==0.2.1",),
        """
from jev_trust import JevClient
asked = {"q": {"type": "noul", "instructions": "Ok?"}}
say(JevClient("k", endpoint=B + "/v1/systemone").decide({"words": W}, asked)["answers"]["q"]["noul"])
""",
    ),
    Program(
        "jev-grep",
        ("jev-grep==0.6.0",),
        """
import subprocess, sys
gateway = {"JEV_PROVIDER": "gateway", "JEV_GATEWAY_URL": B + "/v1/systemone", "JEV_GATEWAY_API_KEY": "k"}
del os.environ["TYPESAFE_API_KEY"]  # with it, it would ask TypeSafe itself
command = [sys.executable, "-m", "jgrep", "--prob", "Ok?"]
said = subprocess.run(command, input=W, env=os.environ | gateway, text=True, stdout=subprocess.PIPE, check=True)
say(float(said.stdout.partition("\\t")[0]))
""",
    ),
    Program(
        "typesafeai-cli",
        ("typesafeai-cli==0.3.3",),
        """
import subprocess, sys
from pathlib import Path
command = [Path(sys.executable).with_name("typesafe"), "noul", "Ok?", "--state", W]
said = subprocess.run(command, stdout=subprocess.PIPE, check=True)
say(json.loads(said.stdout)["data"]["answers"]["noul"]["noul"])
""",
    ),
    Program(
        "curl",
        (),
        r"""
body="{\"model\":\"jev-latest\",\"state\":\"$W\",\"questions\":{\"q\":{\"type\":\"noul\",\"instructions\":\"Ok?\"}}}"
curl -sf "$B/v1/systemone" -H "Content-Type: application/json" -d "$body" -o said.json -D head.txt
noul=$(sed -n 's/.*"noul":\([0-9.]*\).*/\1/p' said.json)
id=$(tr -d '\r' < head.txt | sed -n 's/^x-typesafe-request-id: //p')
echo "[$noul, \"$id\"]"
""",
        shows_id=True,
        language="sh",
    ),
]
