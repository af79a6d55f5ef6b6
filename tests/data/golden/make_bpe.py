#!/usr/bin/env python3
"""A small byte-level BPE vocabulary and the tokens of texts in it, both by Hugging Face's `tokenizers` (0.23).

usage: make_bpe.py FOLDER, with `pip install tokenizers`; FOLDER gets vocab.json, merges.txt and encodings.json. With
--check VOCAB MERGES TEXT: the tokens of that file by `tokenizers`, one per line, to compare a published vocabulary.
"""
import json
import pathlib
import sys

from tokenizers import ByteLevelBPETokenizer

CORPUS = """The quick brown fox jumps over the lazy dog. It's said that they've been there, and we'll see what he'd do.
I'm sure you're right: 1234 of 5678 runs, 3.14159 or 2.71828; there isn't another. Naive, naïve, café, Straße, Übergröße.
def step(x, y):\n    return x + y\n\nfor i in range(100):\n\tprint(i, step(i, i))\n
日本語の文章と中文的句子。 Ελληνικά και кириллица. The model, the models, the modelling, the remodelled models.
"""
TEXTS = [
    "The quick brown fox", " leading and  double   spaces ", "tabs\tand\nnewlines\n\n\n  end  ", "it's they've we'll he'd I'm you're don't",
    "IT'S DON'T 'twas ''quoted''", "1234567890 3.14 ½ ² Ⅷ ٣٤٥", "naïve café Straße Übergröße", "日本語の文章と中文的句子。",
    "Ελληνικά και кириллица", "emoji 👩‍👩‍👧‍👦 and 🇩🇪 flags 🤗!", "e\u0301 combining \u0308 marks", "a\u00a0no-break\u2003em\u3000wide\u0085next",
    "zero\u200bwidth \u180e vowel \ufeffmark", "control \x00\x01\x1f\x7f done", "   ", "\n", "", "x" * 300, " " * 100 + "y",
    "def f(x):\n    return {'a': [1, 2], \"b\": x**2}  # why?\n", "<|endoftext|> is text", "mixed1234abc_DEF-ghi", "\u00aa \u02b0 \u0ec6 letters, ꙮ \U0001d7d8\U0001d538",
    "the models remodelled the modelling of modelled models",
]


def encode(vocab, merges, text):
    return ByteLevelBPETokenizer(str(vocab), str(merges)).encode(text).ids


def main():
    if sys.argv[1] == "--check":
        vocab, merges, text = sys.argv[2:]
        print("\n".join(map(str, encode(vocab, merges, pathlib.Path(text).read_bytes().decode()))))
        return
    folder = pathlib.Path(sys.argv[1])
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([CORPUS] * 2, vocab_size=420, min_frequency=2, show_progress=False)
    tokenizer.save_model(str(folder))
    cases = [{"text": t, "tokens": encode(folder / "vocab.json", folder / "merges.txt", t)} for t in TEXTS]
    (folder / "encodings.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
