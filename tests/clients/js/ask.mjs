// The official JavaScript SDK, unmodified. Asks `times` times, one after another, and prints what came as JSON.
import { noul, TypeSafeClient } from "@typesafe-ai/sdk";

const { words = "Is it?", times = 1, models = false, ...options } = JSON.parse(process.argv[2] ?? "{}");
const client = new TypeSafeClient(options);
const came = [];
for (let n = 0; n < times; n++) {
  try {
    if (models) {
      came.push({ names: (await client.models.list()).map((model) => model.name) });
      continue;
    }
    const question = { state: words, questions: { q: noul("Ok?") } };
    const { data, requestId } = await client.systemOne(question).withResponse();
    came.push({ answer: data.answers.q.noul, model: data.model, tokens: data.usage.input_tokens, id: requestId });
  } catch (error) {
    const { status, body, requestId, headers } = error;
    came.push({ error: error.constructor.name, status, body, id: requestId, after: headers?.get("retry-after") });
  }
}
console.log(JSON.stringify(came));
