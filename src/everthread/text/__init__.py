"""Linguistics for every room: words, stems, sentences, dates, names and facts, in English and Chinese. Pure."""
