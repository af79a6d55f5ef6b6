#!/usr/bin/env python3
"""Texts in all kinds of tokenizer.json give the ids and the texts that the `tokenizers` package gives.

    tokenizer_peer.py PROGRAM [TEXTS]

Trains a tokenizer of each kind on a small text, writes its tokenizer.json, and compares PROGRAM's ids of 2500 drawn texts a kind with
encode(), and its text of these ids with decode(). Exit code 77 where the package is not installed, 1 where something differs.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

PROGRAM, COUNT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2500
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="tutti-tokenizers-"))
WORDS = """the quick brown fox jumps over lazy dogs don't you'll we've I'm it's they'd naïve café déjà vu Straße ÄÖÜ ΣΊΣΥΦΟΣ Привет мир
Это тест 你好 世界 東京 タワー カタカナ ひらがな 한국어 안녕하세요 مرحبا שלום नमस्ते สวัสดี def return import print(x) for(i=0;i<10;++i) x->y a_b
camelCase 3.14159 1,234,567 0xFF 42 2026-11-26 user@example.com https://x.org/a?b=c&d=e #include <vector> std::map<int,string> == != >= && ||
<s> </s> <mask> [MASK] [CLS] <|endoftext|>""".split()
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u2003", "\u3000", "\u200b", " \t  "]
BLOCKS = [(0x20, 0x7f), (0xa0, 0x180), (0x250, 0x2b0), (0x300, 0x370), (0x391, 0x3ca), (0x410, 0x450), (0x5d0, 0x5eb), (0x620, 0x650),
          (0x905, 0x93a), (0xe01, 0xe3b), (0x1e00, 0x1f00), (0x2010, 0x2028), (0x2030, 0x205f), (0x20a0, 0x20c0), (0x2150, 0x2180), (0x2190, 0x2200),
          (0x2460, 0x2500), (0x3041, 0x3097), (0x30a1, 0x30fb), (0x4e00, 0x5000), (0xac00, 0xad00), (0xff01, 0xff5f), (0x1f300, 0x1f321),
          (0x1f600, 0x1f650), (0x1d400, 0x1d455), (0x20000, 0x20100)]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧", "🇩🇪", "❤️", "1️⃣"]
MARKS = ["e\u0301", "a\u0308", "o\u0302\u0323", "ﬁ", "Å", "\u1e9b\u0323", "가", "ｱ", "①", "½"]


def text(r):
    parts = []
    for _ in range(r.randint(0, 12)):
        kind = r.random()
        if kind < 0.45:
            parts.append(r.choice(WORDS))
        elif kind < 0.7:
            parts.append(r.choice(SPACES))
        elif kind < 0.8:
            low, high = r.choice(BLOCKS)
            parts.append("".join(chr(r.randrange(low, high)) for _ in range(r.randint(1, 4))))
        elif kind < 0.87:
            parts.append(r.choice(EMOJI))
        elif kind < 0.94:
            parts.append(r.choice(MARKS))
        else:
            parts.append(r.choice([str(r.randrange(10**6)), "!" * r.randint(1, 4), "'", "…", "--", "_", "A" * 120, "\u0000", "\u00ad"]))
        if r.random() < 0.5:
            parts.append(" ")
    return "".join(parts)


def trained(tokenizer, trainer, corpus):
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def byte_level(corpus):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(t, trainers.BpeTrainer(vocab_size=700, special_tokens=["<|endoftext|>"], show_progress=False,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), corpus)


def llama3(corpus):
    t = Tokenizer(models.BPE(ignore_merges=True))
    words = Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(words, "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    trained(t, trainers.BpeTrainer(vocab_size=700, special_tokens=["<s>", "</s>"], show_progress=False,
                                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), corpus)
    t.add_tokens([AddedToken("camelCase", normalized=True), AddedToken("vu", single_word=True)])
    t.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", t.token_to_id("<s>"))])])
    return t


def smollm(corpus):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True)])
    t.decoder = decoders.ByteLevel()
    return trained(t, trainers.BpeTrainer(vocab_size=500, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), corpus)


def llama2(corpus):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trained(t, trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False, limit_alphabet=120), corpus)
    t = json.loads(t.to_str())
    t["added_tokens"] = t["added_tokens"][:3]  # the bytes are ordinary tokens
    return Tokenizer.from_str(json.dumps(t))


def gemma(corpus):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    return trained(t, trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], show_progress=False, limit_alphabet=90), corpus)


def unigram(corpus):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False)])
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(prepend_scheme="first"), decoders.Metaspace(prepend_scheme="first")
    return trained(t, trainers.UnigramTrainer(vocab_size=3000, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False), corpus)


def bert(corpus):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    trained(t, trainers.WordPieceTrainer(vocab_size=500, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False), corpus)
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t


def words(corpus):
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous")])
    trained(t, trainers.WordLevelTrainer(special_tokens=["[UNK]", "<mask>"], show_progress=False), corpus)
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    return t


def run(folder, texts):
    done = subprocess.run([PROGRAM, folder], input=json.dumps(texts), capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def main():
    failed = False
    r = random.Random(1)
    corpus, texts = [text(r) for _ in range(1500)], [text(r) for _ in range(COUNT)]
    for make in (byte_level, llama3, smollm, llama2, gemma, unigram, bert, words):
        tokenizer = make(corpus)
        folder = ROOT / make.__name__
        folder.mkdir()
        tokenizer.save(str(folder / "tokenizer.json"))
        got = run(folder, texts)
        if isinstance(got, str):
            print(f"FAIL {make.__name__}: {got.strip()}")
            failed = True
            continue
        wrong = []
        for t, ours, e in zip(texts, got, tokenizer.encode_batch(texts)):
            if ours["ids"] != e.ids:
                wrong.append((t, ours["ids"], e.ids))
            elif (want := tokenizer.decode(e.ids, skip_special_tokens=False)) != ours["text"]:
                wrong.append((t, ours["text"], want))
        failed = failed or bool(wrong)
        print(f"{'FAIL' if wrong else 'ok':4} {make.__name__}: {len(texts) - len(wrong)} of {len(texts)} texts, {tokenizer.get_vocab_size()} tokens", flush=True)
        for t, ours, theirs in sorted(wrong, key=lambda w: len(w[0]))[:3]:
            print(f"     {t!r}: {ours!r}, expected {theirs!r}")
    return failed


sys.exit(1 if main() else 0)
