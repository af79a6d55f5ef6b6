#!/usr/bin/env python3
"""Small GGUF files and what is in them, by the packages `gguf` (0.19) and Hugging Face's `tokenizers` (0.23).

usage: make_gguf.py FOLDER, with `pip install gguf tokenizers`; FOLDER gets
  types.gguf, types.safetensors          a tensor of every type that can be read, metadata of every type; the tensors' floats
  blocks.json                            checksums of the floats of random blocks of every type
  llama.gguf, llama.safetensors          a tiny Llama; its weights by Hugging Face's names, unpermuted
  tokenizer.gguf, tokenizer.json         a tokenizer as SmolLM2's; texts with their tokens and what they decode to
  llama-bpe, qwen2, pieces (.gguf, .json)  the same as Llama 3's, Qwen 2's, and SentencePiece's (needs `sentencepiece`)
With --smollm2 FILE, a GGUF of SmolLM2: smollm2.json instead, its tokens of the texts, and of some weights sums and first values.
"""
import json
import pathlib
import struct
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from make_bpe import CORPUS, TEXTS

random = np.random.default_rng(1)
CHAT = "<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n"
MORE = [CHAT, "<|im_start|><|im_end|><|im_end|> x<|im_start", "the 2024 models: 3.14, ½ and ٣٤", "a  1  b   22\n\n3 4", "x12y 1 2\t3",
        "<|im_start|>the<|im_start|> the", "\x04\x06the\x13 mod\x14els", "a\x00b", "<repo_name>x<|endoftext|>", "don't 5't", " 7", "7 ", "  8  "]


def save(path, tensors):
    """A safetensors file of f32."""
    header, body = {}, b""
    for name, x in tensors.items():
        data = np.ascontiguousarray(x, dtype=np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


# Where the f16 scales of a block are.
SCALES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q8_0: [0], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q2_K: [80, 82], Type.Q3_K: [108],
          Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0]}


def blocks(kind, rows, columns, random=random):
    """Blocks of random bytes with scales that are numbers: every pattern of bits, not only those that a quantiser makes."""
    size, width = gguf.GGML_QUANT_SIZES[kind]
    raw = random.integers(0, 256, (rows, columns // size, width), dtype=np.uint8)
    for at in SCALES[kind]:
        x = random.normal(size=raw.shape[:2]).astype(np.float16)
        x[0, 0] = 6e-8  # a subnormal
        raw[:, :, at:at + 2] = x[:, :, None].view(np.uint8)
    return raw.reshape(rows, -1)


def splitmix(seed, count):
    """The bytes of the generator splitmix64, little-endian."""
    z = np.uint64(seed) + np.arange(1, -(-count // 8) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).view(np.uint8)[:count].copy()


def checksums(folder, count=4000):
    """Of random bytes, so with scales that are infinite or NaN too: sum of bits[i] (2 i + 1) mod 2^64, all NaN the same."""
    sums = {}
    for kind in SCALES:
        raw = splitmix(int(kind), count * gguf.GGML_QUANT_SIZES[kind][1]).reshape(count, -1)
        with np.errstate(all="ignore"):
            x = gguf.quants.dequantize(raw, kind).ravel()
        bits = np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32)).astype(np.uint64)
        total = np.sum(bits * (2 * np.arange(bits.size, dtype=np.uint64) + np.uint64(1)), dtype=np.uint64)
        sums[kind.name.lower()] = {"blocks": count, "nans": int(np.isnan(x).sum()), "sum": str(total)}
    (folder / "blocks.json").write_text(json.dumps(sums, indent=1) + "\n")


def types(folder):
    w, floats = gguf.GGUFWriter(folder / "types.gguf", "test"), {}
    w.add_uint8("m.u8", 255)
    w.add_int8("m.i8", -128)
    w.add_uint16("m.u16", 65535)
    w.add_int16("m.i16", -32768)
    w.add_uint32("m.u32", 2**32 - 1)
    w.add_int32("m.i32", -2**31)
    w.add_uint64("m.u64", 2**64 - 1)
    w.add_int64("m.i64", -2**63)
    w.add_float32("m.f32", 0.1)
    w.add_float64("m.f64", 0.1)
    w.add_bool("m.yes", True)
    w.add_bool("m.no", False)
    w.add_string("m.text", "größer\n")
    w.add_array("m.texts", ["", "a", "größer"])
    w.add_array("m.numbers", [1, -2, 3])
    w.add_array("m.reals", [0.5, -1.5])
    w.add_array("m.flags", [True, False])
    w.add_key_value("m.bytes", [1, 2, 255], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT8)
    x = random.normal(size=(3, 5)).astype(np.float32)
    x[0, :4] = [np.inf, -0.0, 1e-40, 65536]
    w.add_tensor("f32", x)
    floats["f32"] = x
    with np.errstate(over="ignore"):
        w.add_tensor("f16", x.astype(np.float16))
        floats["f16"] = x.astype(np.float16).astype(np.float32)
    short = gguf.quants.quantize(x, Type.BF16)
    w.add_tensor("bf16", short, raw_dtype=Type.BF16)
    floats["bf16"] = gguf.quants.dequantize(short, Type.BF16)
    for kind in (Type.Q4_0, Type.Q4_1, Type.Q8_0):
        raw, name = blocks(kind, 3, 96), kind.name.lower()
        w.add_tensor(name, raw, raw_dtype=kind)
        floats[name] = gguf.quants.dequantize(raw, kind)
    # as a quantiser makes them; of three dimensions
    y = random.normal(size=(2, 3, 64)).astype(np.float32)
    w.add_tensor("quantised", gguf.quants.quantize(y, Type.Q8_0), raw_dtype=Type.Q8_0)
    floats["quantised"] = gguf.quants.dequantize(gguf.quants.quantize(y, Type.Q8_0), Type.Q8_0)
    more = np.random.default_rng(2)
    for kind in list(SCALES)[3:]:
        raw, name = blocks(kind, 3, 512 if gguf.GGML_QUANT_SIZES[kind][0] == 256 else 96, more), kind.name.lower()
        w.add_tensor(name, raw, raw_dtype=kind)
        floats[name] = gguf.quants.dequantize(raw, kind)
    w.add_tensor("listed_only", np.zeros((1, 66), np.uint8), raw_dtype=Type.IQ2_XXS)
    write(w)
    save(folder / "types.safetensors", floats)


def write(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def permute(x, heads):
    """As converters lay out rows of queries and keys: the format's description, section LLaMA."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def llama(folder):
    """The model's size `tiny`."""
    vocabulary, width, hidden, heads, kv_heads, layers = 11, 16, 24, 4, 2, 2
    w = gguf.GGUFWriter(folder / "llama.gguf", "llama")
    w.add_block_count(layers)
    w.add_context_length(6)
    w.add_embedding_length(width)
    w.add_feed_forward_length(hidden)
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_rope_freq_base(10000.0)
    w.add_rope_dimension_count(width // heads)
    w.add_layer_norm_rms_eps(1e-5)
    theirs = {}

    def add(name, there, *shape, turned=0):
        x = theirs[there] = random.normal(size=shape).astype(np.float32)
        w.add_tensor(name, permute(x, turned) if turned else x)

    kv = width // heads * kv_heads
    add("token_embd.weight", "model.embed_tokens.weight", vocabulary, width)
    for i in range(layers):
        a, b = f"blk.{i}.", f"model.layers.{i}."
        add(a + "attn_norm.weight", b + "input_layernorm.weight", width)
        add(a + "attn_q.weight", b + "self_attn.q_proj.weight", width, width, turned=heads)
        add(a + "attn_k.weight", b + "self_attn.k_proj.weight", kv, width, turned=kv_heads)
        add(a + "attn_v.weight", b + "self_attn.v_proj.weight", kv, width)
        add(a + "attn_output.weight", b + "self_attn.o_proj.weight", width, width)
        add(a + "ffn_norm.weight", b + "post_attention_layernorm.weight", width)
        add(a + "ffn_gate.weight", b + "mlp.gate_proj.weight", hidden, width)
        add(a + "ffn_up.weight", b + "mlp.up_proj.weight", hidden, width)
        add(a + "ffn_down.weight", b + "mlp.down_proj.weight", width, hidden)
    add("output_norm.weight", "model.norm.weight", width)
    write(w)
    save(folder / "llama.safetensors", theirs)


def pieces():
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False)])


def dumped(cases):
    return "[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n"


def encoded(t, texts=TEXTS + MORE):
    cases = []
    for text in texts:
        ids = t.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "tokens": ids, "decoded": t.decode(ids, skip_special_tokens=False)})
    return cases


def tokenizer(folder):
    """Of a corpus that misses bytes, as SmolLM2's."""
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pieces(), decoders.ByteLevel()
    t.train_from_iterator([CORPUS] * 2, trainers.BpeTrainer(vocab_size=420, min_frequency=2, special_tokens=specials,
                                                            show_progress=False))
    vocabulary, model = t.get_vocab(), json.loads(t.to_str())["model"]
    w = gguf.GGUFWriter(folder / "tokenizer.gguf", "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(sorted(vocabulary, key=vocabulary.get))
    w.add_token_types([3] * len(specials) + [1] * (len(vocabulary) - len(specials)))
    w.add_token_merges([" ".join(m) for m in model["merges"]])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_pad_token_id(2)
    w.add_unk_token_id(0)
    w.add_add_bos_token(False)
    w.add_chat_template("{{ messages }}")
    write(w)
    (folder / "tokenizer.json").write_text(dumped(encoded(t)))


# As in the tokenizer.json of Llama 3 and of Qwen 2.
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
SPLITS = {"llama-bpe": WORDS + r"\p{N}{1,3}" + REST, "qwen2": WORDS + r"\p{N}" + REST}
LINES = ["I'M can'T we'Ll they'RE o'clock 'S ſ's 'ſ", "a\r\n\r\n  b\n \n\tc \n", "12345678 ٣٤٥٦ ½¾ 1a22b333c4444", "x = [1,2];\n\n\n// end...\n",
         "…!?\n\r ¿que? «él»", "\u00a0\u2003x\u2028y\u0085z\x0b", "größer Straße ÄÖÜ 漢字かな 한국어 עברית", "😀👍🏽 e\u0301 \u200d", " \n", "\n", "  ", "the the  the"]


def published(folder):
    """BPE as Llama 3's, whose pieces that are tokens are not merged, and Qwen 2's."""
    for name, pattern in SPLITS.items():
        specials = ["<|begin|>", "<|end|>"]
        t = Tokenizer(models.BPE(ignore_merges=name == "llama-bpe"))
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.decoder = decoders.ByteLevel()
        t.train_from_iterator([CORPUS, *LINES] * 2, trainers.BpeTrainer(vocab_size=480, min_frequency=2, special_tokens=specials,
                              initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
        vocabulary, model = t.get_vocab(), json.loads(t.to_str())["model"]
        if name == "llama-bpe":  # a piece that is a token, but that no merges make
            vocabulary["clock"] = len(vocabulary)
            tokens = {k: v for k, v in vocabulary.items()}
            rebuilt = Tokenizer(models.BPE(tokens, [tuple(m) for m in model["merges"]], ignore_merges=True))
            rebuilt.pre_tokenizer, rebuilt.decoder = t.pre_tokenizer, t.decoder
            rebuilt.add_special_tokens(specials)
            t = rebuilt
        w = gguf.GGUFWriter(folder / f"{name}.gguf", "llama")
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(name)
        w.add_token_list(sorted(vocabulary, key=vocabulary.get))
        w.add_token_types([3] * len(specials) + [1] * (len(vocabulary) - len(specials)))
        w.add_token_merges([" ".join(m) for m in model["merges"]])
        w.add_bos_token_id(0)
        write(w)
        (folder / f"{name}.json").write_text(dumped(encoded(t, TEXTS + LINES + ["<|begin|>a<|end|> clock"])))


def sentence_pieces(folder):
    """SentencePiece's BPE with byte tokens, as Llama 2's."""
    import io

    import sentencepiece
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter((CORPUS + "\n".join(LINES)).splitlines()), model_writer=out, model_type="bpe", vocab_size=420, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.98, minloglevel=2)
    sp = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    ids = range(sp.vocab_size())
    w = gguf.GGUFWriter(folder / "pieces.gguf", "llama")
    w.add_tokenizer_model("llama")
    w.add_token_list([sp.id_to_piece(i) for i in ids])
    w.add_token_scores([sp.get_score(i) for i in ids])
    w.add_token_types([6 if sp.is_byte(i) else 3 if sp.is_control(i) else 2 if sp.is_unknown(i) else 1 for i in ids])
    w.add_bos_token_id(sp.bos_id())
    w.add_eos_token_id(sp.eos_id())
    w.add_unk_token_id(sp.unk_id())
    write(w)
    cases = [{"text": text, "tokens": (tokens := sp.encode(text)), "decoded": sp.decode(tokens)}
             for text in TEXTS + LINES + MORE if "<s>" not in text and "<unk>" not in text]
    (folder / "pieces.json").write_text(dumped(cases))


def smollm2(folder, file):
    r = gguf.GGUFReader(file)
    tokens, merges, kinds = (r.fields[f"tokenizer.ggml.{k}"].contents() for k in ("tokens", "merges", "token_type"))
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    t.pre_tokenizer, t.decoder = pieces(), decoders.ByteLevel()
    t.add_special_tokens([AddedToken(x, special=True, normalized=False) for x, k in zip(tokens, kinds) if k == 3])
    weights = {}
    for x in r.tensors:
        if not x.name.startswith("blk.") or x.name.startswith("blk.29."):
            y = gguf.quants.dequantize(x.data, x.tensor_type)
            weights[x.name] = {"shape": list(y.shape), "sum": float(np.sum(y, dtype=np.float64)),
                               "squares": float(np.sum(y.astype(np.float64)**2)), "first": [float(v) for v in y.ravel()[:4]]}
    (folder / "smollm2.json").write_text('{"encodings": ' + dumped(encoded(t)) + ', "weights": {\n' + ",\n".join(
        f"{json.dumps(k)}: {json.dumps(v)}" for k, v in weights.items()) + "\n}}\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        smollm2(folder, sys.argv[3])
        return
    types(folder)
    checksums(folder)
    llama(folder)
    tokenizer(folder)
    published(folder)
    sentence_pieces(folder)


if __name__ == "__main__":
    main()
