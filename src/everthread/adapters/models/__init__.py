"""Chat models and summarisers behind our ports, and the weights of local models.

named_models                chat models by name, and those configured for turns; `providers` has what is special to each
chat_model                  a LangChain model as a turn calls it: retries, timeouts, typed errors, `direct_stream`
summariser, summary_prompt  a chat model that writes summaries, and what it is asked; `named_summariser` makes one of
                            whatever the user gave
local, weights              a model on this machine, and its weights
scripted                    a chat model that answers by script, for tests and demos
"""
