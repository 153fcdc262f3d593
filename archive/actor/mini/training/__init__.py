"""The texts the read-outs of the built-in model were trained on, and the program that makes heads.npz from them.

Never here: anything a running server needs, or a line out of tests/quality, which is kept for judging.

fact_true.txt, fact_false.txt   yes/no questions that need no text; the same line in both is about the same thing
about_texts.jsonl               texts by topic
about_questions.jsonl           questions about a text: the topics for which the answer is yes; the ones to pass over
about_pairs.jsonl               single texts with a question and its answer
safe.txt, unsafe.txt            texts that may, and may not, be shown publicly; whoever is named in them is made up
kind_*.txt                      questions of each kind
choices.jsonl, scores.jsonl     options or levels, and texts with the right one
dev.jsonl                       a little of everything, in the format of tests/quality; used to fit, never to judge
"""
