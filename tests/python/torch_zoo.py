"""Real PyTorch modules, small, with random weights and no dropout: name -> (module, inputs, targets, loss)."""
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))


def _classes(n, classes=10):
    return torch.randint(0, classes, (n,))


def _images(*shape):
    return torch.randn(*shape)


def _tokens(n, t, vocabulary=50):
    return torch.randint(0, vocabulary, (n, t))


def _next_token(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class _Logits(nn.Module):
    """The logits, or last hidden states, of a module of transformers."""

    def __init__(self, module, key="logits"):
        super().__init__()
        self.module, self.key = module, key

    def forward(self, *args):
        return getattr(self.module(*args), self.key)


class Tagger(nn.Module):
    """A bidirectional LSTM that tags every token."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(48, 7)

    def forward(self, tokens):
        return self.tags(self.lstm(self.embedding(tokens))[0])


class GruReader(nn.Module):
    """The last state of a GRU, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.gru(x)[1][-1])


def resnet18():
    import torchvision
    return torchvision.models.resnet18(num_classes=10), (_images(8, 3, 64, 64),), (_classes(8),), nn.CrossEntropyLoss()


def mobilenet_v2():
    """A sample in which no activation lies at a kink of ReLU6: elsewhere PyTorch's own f32 is 1e-3 to 6e-3 from its float64."""
    import torchvision
    torch.manual_seed(1)
    module = torchvision.models.mobilenet_v2(num_classes=10, dropout=0.0)
    for block in module.features:
        if getattr(block, "use_res_connect", False):
            nn.init.constant_(block.conv[-1].weight, 0.1)
    return module, (torch.randn(8, 3, 96, 96),), (torch.randint(0, 10, (8,)),), nn.CrossEntropyLoss()


def vit():
    from torchvision.models.vision_transformer import VisionTransformer
    return (VisionTransformer(32, 8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10), (_images(4, 3, 32, 32),),
            (_classes(4),), nn.CrossEntropyLoss(label_smoothing=0.1))


def bert():
    from transformers import BertConfig, BertForMaskedLM
    config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    labels = torch.where(torch.rand(2, 12) < 0.3, _tokens(2, 12), -100)
    labels[:, 0] = 3
    return (_Logits(BertForMaskedLM(config)), (_tokens(2, 12),), (labels,),
            lambda y, labels: F.cross_entropy(y.flatten(0, 1), labels.flatten()))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        use_cache=False)
    tokens = _tokens(2, 12)
    return _Logits(GPT2LMHeadModel(config)), (tokens,), (tokens,), _next_token


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=32, use_cache=False)
    tokens = _tokens(2, 12)
    return _Logits(LlamaForCausalLM(config)), (tokens,), (tokens,), _next_token


def t5_encoder():
    from transformers import T5Config, T5EncoderModel
    config = T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0)
    return (_Logits(T5EncoderModel(config), "last_hidden_state"), (_tokens(2, 12),), (torch.randn(2, 12, 32),), nn.MSELoss())


def whisper_encoder():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = WhisperConfig(d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, num_mel_bins=8,
                           max_source_positions=20, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    return (_Logits(WhisperEncoder(config), "last_hidden_state"), (torch.randn(2, 8, 40),), (torch.randn(2, 20, 32),), nn.MSELoss())


def unet():
    from zoo import unet as zoo
    return zoo.Unet(4, 2), (_images(2, 1, 16, 16),), (torch.randint(0, 4, (2, 16, 16)),), nn.CrossEntropyLoss()


def tagger():
    return Tagger(), (_tokens(3, 9),), (torch.randint(0, 7, (3, 9)),), lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten())


def gru():
    return GruReader(), (torch.randn(4, 6, 8),), (_classes(4),), nn.CrossEntropyLoss()


def dlrm():
    from zoo import dlrm as zoo
    return (zoo.make("tiny"), (torch.rand(4, 3), torch.randint(0, 10, (4, 3, 4))), (torch.randint(0, 2, (4,)).float(),),
            nn.BCEWithLogitsLoss())


def diffusion():
    from zoo import diffusion as zoo
    return zoo.make("tiny"), (_images(2, 1, 8, 8), torch.randint(0, 1000, (2,))), (_images(2, 1, 8, 8),), nn.MSELoss()


def transformer():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
    return (nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 5)), (torch.randn(2, 7, 32),),
            (torch.randn(2, 7, 5),), nn.SmoothL1Loss())


ALL = {f.__name__: f for f in (resnet18, mobilenet_v2, vit, bert, gpt2, llama, t5_encoder, whisper_encoder, unet, tagger, gru, dlrm,
                               diffusion, transformer)}


def make(name):
    torch.manual_seed(0)
    return ALL[name]()
