"""Linguistics for every room, in English and Chinese. Pure.

words                          the one tokenizer of search, recall and knowledge; `irregular_verbs` joins went and go
related_words                  other words for the same thing, in both languages and between them
bm25                           the one formula that search, recall and knowledge rank by
terms                          the words by which sentences of a summary are compared and weighed
sentences, passages            a text cut into sentences for summaries, into passages for recall
facts                          numbers, dates, names, paths, found by the rules of `fact_rules_names` and
                               `fact_rules_quantities` (`fact_rule` says what a rule is); `normal_forms` compares them
cues                           the phrases by which a sentence decides, asks or promises
dates, language                the times that a question names; which language a text is in
secrets, control_syntax        keys pasted by mistake; text that a model would read as more than text
"""
