"""Models that a JSON file describes: trained, evaluated, planned, measured and judged like the others; and every mistake in one
is named with its place."""
import json
import pathlib
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
NET = {"name": "small", "input": [1, 8, 8], "loss": "cross_entropy", "batch": 8,
       "layers": [{"Conv2d": {"out_channels": 4, "kernel_size": 3, "padding": 1}}, "ReLU", "Flatten", {"Dropout": {"p": 0.1}},
                  {"name": "head", "Linear": {"out_features": 3}}]}
DATA = ["--data", "synthetic:1x8x8:3:64:32"]
TEXT = {"input": [8], "loss": "language_model", "batch": 4,
        "layers": [{"Embedding": {"num_embeddings": 11, "embedding_dim": 8}}, {"positions": {"num_embeddings": 8}},
                   {"TransformerEncoderLayer": {"nhead": 2, "dim_feedforward": 8, "is_causal": True}}, {"LSTM": {"hidden_size": 8}},
                   {"Linear": {"out_features": 11}}]}


class Description(harness.Case):
    def setUp(self):
        super().setUp()
        self.device = harness.usable_devices()[0]

    def write(self, net, name="net.json"):
        path = self.folder / name
        path.write_text(net if isinstance(net, str) else json.dumps(net, indent=1))
        return path

    def test_trains_resumes_and_is_evaluated_when_the_file_is_gone(self):
        net, run = self.write(NET), self.folder / "run.safetensors"
        whole = self.train(net, *DATA, "--epochs", 4, "--device", self.device)
        self.assertEqual(whole["parameters"], 4 * 9 + 4 + 256 * 3 + 3)
        self.assertEqual(whole["batch"], 8)
        self.train(net, *DATA, "--epochs", 2, "--device", self.device, "--checkpoint", run)
        net.write_text("{}")
        net.unlink()
        on = self.train("--resume", run, "--epochs", 4, "--device", self.device)
        self.assertEqual(on["state_hash"], whole["state_hash"])
        score = self.json("eval", run, "--device", self.device)
        self.assertEqual(score["accuracy"], whole["accuracy"])
        self.write({**NET, "layers": ["Flatten", "Linear"]})
        self.assertEqual(self.json("eval", run, "--device", self.device)["loss"], score["loss"], "the checkpoint's text counts")
        self.fails(2, ["another architecture"], "eval", run, net)
        out = self.folder / "out.npz"
        self.assertEqual(self.json("predict", run, "--device", self.device, "--output", out)["shape"], [32, 3])

    def test_weights_of_a_file(self):
        net, weights = self.write(NET), self.folder / "w.safetensors"
        trained = self.train(net, *DATA, "--epochs", 2, "--device", self.device, "--merged", weights)
        score = self.json("eval", net, "--init", weights, *DATA, "--device", self.device)
        self.assertEqual(score["accuracy"], trained["accuracy"])
        self.fails(2, ["net.json describes only layers, not their weights", "--init"], "eval", net, *DATA, "--device", self.device)

    def test_every_command_takes_it(self):
        net, text = self.write(NET), self.write(TEXT, "text.json")
        self.assertTrue(self.json("plan", net, "--device", self.device, "--no-search")["plans"][0]["peak_bytes"] > 0)
        for model in (net, text):
            found = self.json("parity", "--model", model, "--device", self.device, "--steps", 2)
            self.assertTrue(found["ok"], found)
        done = self.json("bench", "--models", net, "--device", self.device, "--quick", "--repetitions", 2, "--time", "0.01")
        self.assertEqual([m["status"] for m in done["results"]], ["measured"])
        self.done("bisect", net, "--a", self.device, "--b", "reference:0", "--steps", 1, "--batch", 2)

    def test_generates(self):
        """Token by token as all at once: what eval says of a text is what decoding says."""
        words = self.folder / "words.txt"
        words.write_text("abcdefgh" * 200)
        net = self.write({**TEXT, "lr": 1e-2, "layers": [{"Embedding": {"embedding_dim": 16}}, {"positions": {"num_embeddings": 8}},
                                          {"TransformerEncoderLayer": {"nhead": 2, "dim_feedforward": 16, "dropout": 0, "is_causal": True}},
                                          {"LSTM": {"hidden_size": 16}}, "Linear"]})
        run = self.folder / "run.safetensors"
        trained = self.train(net, "--data", f"text:{words}", "--steps", 150, "--device", self.device, "--checkpoint", run)
        self.assertGreater(trained["accuracy"], 0.99)
        went_on = self.json("generate", run, "--prompt", "cde", "--tokens", 5, "--temperature", 0, "--device", self.device)
        self.assertEqual(went_on["text"], "fghab")

    def test_the_examples(self):
        for name in ("fashion_net", "text_net"):
            path = ROOT / f"examples/{name}.json"
            data = ["--data", "synthetic:1x28x28:10:64:16"] if name == "fashion_net" else ["--data", f"text:{ROOT / 'README.md'}"]
            done = self.train(path, *data, "--steps", 2, "--no-eval", "--device", self.device)
            self.assertEqual(done["steps"], 2)

    def test_layers_are_listed(self):
        layers = {k["name"]: k for k in self.json("layers")["layers"]}
        self.assertEqual(layers["Conv2d"]["arguments"][2]["name"], "kernel_size")
        table = self.done("layers", "--markdown").stdout
        page = (ROOT / "docs/LAYERS.md").read_text()
        self.assertIn(table, page, "docs/LAYERS.md: put in what `tutti layers --markdown` prints")
        for name in layers:
            self.assertIn(f"| `{name}` |", page)
        self.assertIn("Conv2d", self.done("layers").stdout)

    def test_mistakes_are_named_with_their_place(self):
        conv, linear = {"Conv2d": {"out_channels": 4, "kernel_size": 3}}, {"Linear": {"out_features": 3}}

        def net(*layers, **more):
            return {**NET, "layers": list(layers), **more}

        cases = [
            ('{"layers": [\n "ReLU",\n]}', ["net.json, line 3, column 1", "correct the JSON"]),
            ('{"layers": ["ReLU"', ["net.json, line 1", "correct the JSON"]),
            ('{"layers": ["ReLU"], "layers": []}', ["net.json", "contains the key 'layers' twice"]),
            ("[" * 100, ["net.json", "nested too deeply"]),
            ("[]", ["expected an object"]),
            ("", ["net.json"]),
            (net(), ["layers: [], expected a list of at least one layer"]),
            ({"loss": "mse"}, ['the key "layers" is missing']),
            (net("Flatten", linear, size=3), ["unknown key 'size'"]),
            (net("Flatten", "Liner"), ["layers[1]", "unknown layer 'Liner'", "did you mean 'Linear'?"]),
            (net("Flatten", "conv2d"), ["layers[1]", "did you mean 'Conv2d'?"]),
            (net({"residual": [conv, "Relu6x"]}), ["layers[0].layers[1]", "did you mean 'ReLU6'?"]),
            (net("Wombat"), ["unknown layer 'Wombat'", "use ReLU, ","`tutti layers`"]),
            (net({"Conv2d": {"out_channels": 4, "kernal_size": 3}}), ["layers[0] (Conv2d)", "unknown argument 'kernal_size'", "'kernel_size'"]),
            (net({"Conv2d": {"out_channels": 4}}), ["layers[0] (Conv2d)", "'kernel_size' is missing", "an integer of at least 1"]),
            (net({"Conv2d": {"out_channels": "4", "kernel_size": 3}}), ["layers[0] (Conv2d)", 'out_channels is "4"', "an integer of at least 1"]),
            (net({"Conv2d": {"out_channels": 0, "kernel_size": 3}}), ["out_channels is 0"]),
            (net({"Conv2d": {"out_channels": 1e30, "kernel_size": 3}}), ["out_channels is 1e+30"]),
            (net({"Dropout": {"p": 1}}), ["layers[0] (Dropout)", "p is 1", "from 0 to below 1"]),
            (net({"Linear": {"out_features": 3, "bias": 1}}), ["bias is 1", "true or false"]),
            (net({"GELU": {"approximate": "erf"}}), ['approximate is "erf"', "none or tanh"]),
            (net({"Unflatten": {"dim": 1, "unflattened_size": [0]}}), ["unflattened_size is [0]"]),
            (net({"residual": []}), ["layers[0] (residual)", "a list of at least one"]),
            (net({"ReLU": {}, "GELU": {}}), ["layers[0]", "expected a layer"]),
            (net({"name": "a.b", "ReLU": {}}), ["the name is \"a.b\"", "without a dot"]),
            (net({"name": "1", "ReLU": {}}, "ReLU"), ["layers[1]", "also named '1'"]),
            (net(7), ["layers[0]", "7, expected a layer"]),
            (net({"Linear": 10}), ["layers[0] (Linear)", "expected an object of arguments"]),
            (net("Flatten", "Linear", "ReLU"), ["layers[1] (Linear)", "'out_features' is missing", "only in the last layer"]),
            (net(conv, linear), ["labels", "loss cross_entropy", "Flatten"]),
            (net("Flatten", conv), ["layers[1] (Conv2d), with input f32[1, 64]", "rank 4"]),
            (net("Flatten", {"Linear": {"in_features": 65, "out_features": 3}}),
             ["layers[1] (Linear), with input f32[1, 64]", "in_features is 65, but axis 1 of the input has size 64", '"in_features": 64']),
            (net({"residual": [conv]}), ["layers[0] (residual)", "equal to be added"]),
            (net({"concat": [conv, []]}), ["layers[0] (concat)", "branch 1 produces"]),
            (net("Flatten", {"sum": [linear, {"Linear": {"out_features": 4}}]}), ["layers[1] (sum)", "branch 1 produces f32[1, 4]"]),
            (net({"repeat": {"times": 1000, "layers": [{"repeat": {"times": 1000, "layers": ["ReLU"]}}]}}), ["more than 200000 layers"]),
            (net({"repeat": {"times": 100000, "layers": ["Mish"]}}), ["more than 200000 graph nodes"]),
            (net("Flatten", linear, loss="mse"), ["loss mse", "no column 'target'"]),
            (net("Flatten", linear, loss="crossentropy"), ["loss", "did you mean 'cross_entropy'?"]),
            (net("Flatten", linear, optimizer="adm"), ["optimizer", "adm"]),
            (net("Flatten", linear, batch=0), ["batch: 0"]),
            (net("Flatten", linear, lr="fast"), ['lr: "fast"']),
            (net("Flatten", linear, input="images"), ['input: "images"', '"input": [1, 28, 28]']),
            (net("Flatten", linear, input=[3, 8, 8]), ['"input" is [3, 8, 8]', "f32[1, 8, 8]"]),
            (net({"Embedding": {"num_embeddings": 9, "embedding_dim": 4}}), ["layers[0] (Embedding)", "expected i32"]),
            (net("Flatten", linear, name=3), ["name: 3", "a string"]),
        ]
        for text, parts in cases:
            with self.subTest(parts=parts):
                path = self.write(text)
                self.fails(2, ["net.json", *parts], "train", path, *DATA, "--steps", 1, "--device", self.device, "--quiet")
        self.fails(2, ["no.json", "there is no such file"], "train", self.folder / "no.json", *DATA)
        self.fails(2, ["there is no such file"], "train", self.write(NET).rename(self.folder / "d").parent / "d.json")
        (self.folder / "folder.json").mkdir()
        self.fails(2, ["folder.json"], "train", self.folder / "folder.json", *DATA)
        big = self.write(" " * (1 << 20) + json.dumps(NET))
        self.fails(2, ["at most 1048576"], "train", big, *DATA)
        self.fails(2, ["label 2 of sample 0 is outside [0, 2)"], "train", self.write(net("Flatten", {"Linear": {"out_features": 2}})), *DATA)
        net_path = self.write(NET)
        self.fails(2, ["--dropout 0.5", "the file defines the model"], "train", net_path, *DATA, "--dropout", "0.5")
        self.fails(2, ["no size 'tiny'"], "train", net_path, *DATA, "--size", "tiny")
        self.fails(2, ["did you mean 'mse'?"], "train", net_path, *DATA, "--loss", "msee")
        self.fails(2, ['without "data" or "input" in the file'], "train", self.write({"layers": ["Flatten", "Linear"]}))
        self.fails(2, ["no synthetic data can be generated for loss mse"], "train", self.write(net("Flatten", linear, loss="mse")))


if __name__ == "__main__":
    unittest.main()
