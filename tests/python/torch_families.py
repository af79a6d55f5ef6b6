"""Families of transformers and torchvision at tiny size, with random weights and no dropout: name -> (module, inputs, targets, loss)."""
import torch
import torch.nn.functional as F
from torch import nn

# What configurations call their sizes; a configuration takes those that it has.
TINY = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "num_layers": 2,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "d_model": 32, "d_ff": 48, "d_kv": 8, "num_heads": 4, "n_embd": 32,
        "n_layer": 2, "n_head": 4, "n_positions": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "head_dim": 8, "use_cache": False, "dropout": 0.0,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "hidden_dropout": 0.0, "attention_dropout": 0.0,
        "activation_dropout": 0.0, "classifier_dropout": 0.0, "layerdrop": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "dropout_rate": 0.0, "embed_dropout": 0.0, "resid_dropout": 0.0,
        "drop_path_rate": 0.0, "moe_intermediate_size": 16, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
        "ffn_dim": 48, "word_embed_proj_dim": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "embedding_size": 16,
        "embedding_dropout": 0.0, "mlp_dropout": 0.0, "summary_last_dropout": 0.0, "pooler_dropout": 0.0, "feat_proj_dropout": 0.0,
        "final_dropout": 0.0, "apply_spec_augment": False, "mask_time_prob": 0.0}


class Logits(nn.Module):
    """One of the named outputs of a module of transformers."""

    def __init__(self, module, key="logits", names=None, **more):
        super().__init__()
        self.module, self.key, self.names, self.more = module, key, names, more

    def forward(self, *args):
        named = dict(zip(self.names, args)) if self.names else {}
        return getattr(self.module(*(() if self.names else args), **named, **self.more), self.key)


class Refined(nn.Module):
    def __init__(self, module, updates):
        super().__init__()
        self.module, self.updates = module, updates

    def forward(self, a, b):
        return self.module(a, b, num_flow_updates=self.updates)


def tokens(*shape):
    return torch.randint(3, 50, shape)


def tiny(kind, head="ForCausalLM", part="", without=(), **more):
    """The class of transformers of that name, with a configuration of few sizes. `part`: of a model of several, whose configuration it has.
    `without`: sizes that it does not take."""
    import transformers
    config_class = getattr(transformers, f"{kind}{part}Config")
    known = config_class()
    sizes = {k: v for k, v in TINY.items() if hasattr(known, k) and not isinstance(getattr(config_class, k, None), property)
             and k not in getattr(known, "attribute_map", {}) and type(getattr(known, k)) not in (list, tuple) and k not in without}
    config = config_class(**{**sizes, **more})
    return getattr(transformers, f"{kind}{head}")(config)


def next_token(y, t):
    return F.cross_entropy(y[:, :-1].flatten(0, 1), t[:, 1:].flatten())


def every_token(y, t):
    return F.cross_entropy(y.flatten(0, 1), t.flatten())


def causal(kind, head="ForCausalLM", length=12, **more):
    def make():
        x = tokens(2, length)
        return Logits(tiny(kind, head, **more)), (x,), (x,), next_token
    return make


def masked(kind, head="ForMaskedLM", length=12, key="logits", **more):
    def make():
        module = Logits(tiny(kind, head, **more), key)
        if head == "Model":
            return module, (tokens(2, length),), (torch.randn(module(tokens(2, length)).shape),), nn.MSELoss()
        return module, (tokens(2, length),), (tokens(2, length),), every_token
    return make


def translated(kind, head="ForConditionalGeneration", **more):
    def make():
        mask = torch.ones(2, 9, dtype=torch.long)
        mask[1, 6:] = 0
        module = Logits(tiny(kind, head, **more), names=("input_ids", "attention_mask", "decoder_input_ids"))
        return module, (tokens(2, 9), mask, tokens(2, 7)), (tokens(2, 7),), every_token
    return make


def padded(kind, head="ForSequenceClassification", **more):
    def make():
        mask = torch.ones(3, 9, dtype=torch.long)
        mask[1, 6:] = 0
        module = Logits(tiny(kind, head, **more), names=("input_ids", "attention_mask"))
        return module, (tokens(3, 9), mask), (torch.randint(0, 2, (3,)),), nn.CrossEntropyLoss()
    return make


def seen(kind, head="ForImageClassification", size=32, n=2, key="logits", shape=None, **more):
    def make():
        module = Logits(tiny(kind, head, **more), key)
        x = torch.randn(shape or (n, 3, size, size))
        y = module.eval()(x)
        if key == "logits" and y.dim() == 2:
            return module, (x,), (torch.randint(0, y.shape[1], (len(x),)),), nn.CrossEntropyLoss()
        return module, (x,), (torch.randn(y.shape),), nn.MSELoss()
    return make


def pictures(name, size=64, n=2, key=None, **more):
    def make():
        import torchvision
        for m in (torchvision.models, torchvision.models.segmentation, torchvision.models.video):
            if hasattr(m, name):
                module = getattr(m, name)(weights=None, **more)
        for m in module.modules():
            if isinstance(m, nn.Dropout):
                m.p = 0.0
            if type(m).__name__ == "StochasticDepth":
                m.p = 0.0
        if key is not None:
            return module, (torch.randn(n, 3, size, size),), (torch.randint(0, 5, (n, size, size)),), lambda y, t: F.cross_entropy(y[key], t)
        return module, (torch.randn(n, 3, size, size),), (torch.randint(0, 10, (n,)),), nn.CrossEntropyLoss()
    return make


def aux_heads(name, size, **more):
    def make():
        module, x, t, _ = pictures(name, size, num_classes=10, aux_logits=True, init_weights=False, **more)()
        heads = ("aux_logits1", "aux_logits2") if name == "googlenet" else ("aux_logits",)
        return module, x, t, lambda y, t: F.cross_entropy(y.logits, t) + 0.3 * sum(F.cross_entropy(getattr(y, h), t) for h in heads)
    return make


def clip(kind="CLIP"):
    def make():
        import transformers
        sizes = {k: TINY[k] for k in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")}
        config = getattr(transformers, f"{kind}Config")(
            text_config={**sizes, "vocab_size": 50, "max_position_embeddings": 16, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
            vision_config={**sizes, "image_size": 32, "patch_size": 8}, projection_dim=16)
        module = Logits(getattr(transformers, f"{kind}Model")(config), "logits_per_image", ("input_ids", "pixel_values"))
        return module, (tokens(3, 9), torch.randn(3, 3, 32, 32)), (torch.arange(3),), nn.CrossEntropyLoss()
    return make


def whisper():
    module = Logits(tiny("Whisper", "ForConditionalGeneration", num_mel_bins=8, max_source_positions=20, max_target_positions=16,
                         decoder_start_token_id=1), names=("input_features", "decoder_input_ids"))
    return module, (torch.randn(2, 8, 40), tokens(2, 7)), (tokens(2, 7),), every_token


def wav2vec(head):
    def make():
        module = tiny("Wav2Vec2", head, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8), num_feat_extract_layers=2,
                      num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, classifier_proj_size=16)
        x = torch.randn(2, 400)
        if head == "ForCTC":
            lengths = torch.tensor([7, 5])
            return (Logits(module), (x,), (tokens(2, 7), lengths),
                    lambda y, t, n: F.ctc_loss(F.log_softmax(y, -1).transpose(0, 1), t, torch.full((2,), y.shape[1]), n))
        return Logits(module), (x,), (torch.randint(0, 2, (2,)),), nn.CrossEntropyLoss()
    return make


def detr():
    module = Logits(tiny("Detr", "ForObjectDetection", use_timm_backbone=False, use_pretrained_backbone=False, num_queries=5, backbone_config=None))
    x = torch.randn(2, 3, 64, 64)
    return module, (x,), (torch.randn(module.eval()(x).shape),), nn.MSELoss()


def raft():
    import torchvision
    return flow(torchvision.models.optical_flow.raft_small(weights=None), 128, 3)


def flow(module, size, updates):
    """Optical flow, refined so often; the loss weighs the refinements as the paper does."""
    return (Refined(module, updates), (torch.rand(1, 3, size, size), torch.rand(1, 3, size, size)), (torch.randn(1, 2, size, size),),
            lambda y, t: sum(0.8 ** (len(y) - i - 1) * (f - t).abs().mean() for i, f in enumerate(y)))


def small(make, size=32, n=8):
    """A torchvision class of few and narrow blocks, in place of the sizes that it has names for."""
    def made():
        return make(), (torch.randn(n, 3, size, size),), (torch.randint(0, 10, (n,)),), nn.CrossEntropyLoss()
    return made


def heads(make):
    """As small(), of a module with auxiliary heads; a sample in which no activation lies at a kink of ReLU, as in mobilenet_v2's."""
    def made():
        torch.manual_seed(2)
        module, x, t, _ = small(make, 64)()
        return module, x, t, lambda y, t: F.cross_entropy(y.logits, t) + 0.3 * (F.cross_entropy(y.aux_logits1, t) + F.cross_entropy(y.aux_logits2, t))
    return made


def small_swin():
    from torchvision.models.swin_transformer import SwinTransformer
    return SwinTransformer([4, 4], 16, [2, 1], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10)


def small_convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=10)


def small_densenet():
    from torchvision.models.densenet import DenseNet
    return DenseNet(growth_rate=8, block_config=(2, 2), num_init_features=16, bn_size=2, num_classes=10)


def small_efficientnet():
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig
    return EfficientNet([MBConvConfig(1, 3, 1, 8, 8, 1, 1, 1), MBConvConfig(4, 3, 2, 8, 16, 1, 1, 1)], 0.0, stochastic_depth_prob=0.0, num_classes=10, last_channel=32)


def small_maxvit():
    from torchvision.models.maxvit import MaxVit
    return MaxVit((32, 32), 8, 4, [8, 16], [1, 1], 4, 0.0, num_classes=10)


def small_googlenet():
    """All of its blocks, of a sixteenth of their channels; an auxiliary head is a linear layer."""
    from torchvision.models.googlenet import BasicConv2d, GoogLeNet, Inception

    def thin(n):
        return n if n == 3 else n // 16

    class Head(nn.Sequential):
        def __init__(self, channels, classes, dropout):
            super().__init__(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(channels // 16 * 4, classes))

    module = GoogLeNet(10, init_weights=False, dropout=0.0, blocks=[lambda i, o, **how: BasicConv2d(thin(i), thin(o), **how),
                                                                   lambda *sizes: Inception(*map(thin, sizes)), Head])
    module.fc = nn.Linear(64, 10)
    return module


def small_raft():
    from torchvision.models.optical_flow.raft import _raft, BottleneckBlock
    module = _raft(feature_encoder_layers=(8, 8, 8, 8, 16), feature_encoder_block=BottleneckBlock, feature_encoder_norm_layer=nn.InstanceNorm2d,
                   context_encoder_layers=(8, 8, 8, 8, 16), context_encoder_block=BottleneckBlock, context_encoder_norm_layer=None,
                   corr_block_num_levels=2, corr_block_radius=2, motion_encoder_corr_layers=(8,), motion_encoder_flow_layers=(8, 8),
                   motion_encoder_out_channels=10, recurrent_block_hidden_state_size=8, recurrent_block_kernel_size=(3,),
                   recurrent_block_padding=(1,), flow_head_hidden_size=8, use_mask_predictor=False)
    return flow(module, 64, 2)


_MLA = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 4,
        "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "num_key_value_heads": 4}
_SSM = {"state_size": 8, "conv_kernel": 4, "expand": 2, "time_step_rank": 4}

ALL = {
    # texts, one token after the other
    "gpt_neo": causal("GPTNeo", attention_types=[[["global", "local"], 1]], window_size=8), "gptj": causal("GPTJ", rotary_dim=4),
    "gpt_neox": causal("GPTNeoX"), "opt": causal("OPT"), "bloom": causal("Bloom"), "falcon": causal("Falcon"),
    "mistral": causal("Mistral"), "phi": causal("Phi"), "phi3": causal("Phi3"), "qwen2": causal("Qwen2"), "qwen3": causal("Qwen3"),
    "gemma": causal("Gemma"), "gemma2": causal("Gemma2"), "gemma3": causal("Gemma3", part="Text"), "stablelm": causal("StableLm"),
    "llama3": causal("Llama", rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                                               "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
    "cohere": causal("Cohere"), "olmo": causal("Olmo"), "olmo2": causal("Olmo2"), "granite": causal("Granite"),
    "starcoder2": causal("Starcoder2", residual_dropout=0.0), "codegen": causal("CodeGen", rotary_dim=4),
    "mamba": causal("Mamba", **_SSM), "mamba2": causal("Mamba2", state_size=8, num_heads=8, head_dim=8, n_groups=2, chunk_size=8),
    "rwkv": causal("Rwkv", attention_hidden_size=32), "xlstm": causal("xLSTM", num_blocks=2, num_heads=4),
    "recurrent_gemma": causal("RecurrentGemma", lru_width=32, attention_window_size=8, conv1d_width=4),
    "mixtral": causal("Mixtral"), "qwen2_moe": causal("Qwen2Moe", shared_expert_intermediate_size=16),
    "qwen3_moe": causal("Qwen3Moe"), "deepseek_v3": causal("DeepseekV3", **_MLA), "gpt_oss": causal("GptOss"),
    "deepseek_v2": causal("DeepseekV2", **_MLA), "olmoe": causal("Olmoe"), "granitemoe": causal("GraniteMoe"), "jamba": causal(
        "Jamba", mamba_d_state=8, mamba_dt_rank=4, attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False),
    "llama4": causal("Llama4", part="Text"), "glm4": causal("Glm4"), "smollm3": causal("SmolLM3"),
    # texts as a whole
    "distilbert": masked("DistilBert", dim=32, hidden_dim=48, n_layers=2, n_heads=4), "albert": masked("Albert"),
    "roberta": masked("Roberta"), "electra": masked("Electra"), "xlnet": causal("XLNet", "LMHeadModel", d_inner=48),
    "modernbert": masked("ModernBert"), "big_bird": masked("BigBird", attention_type="original_full"),
    "funnel": masked("Funnel", without=("num_hidden_layers",), block_sizes=[1, 1], d_inner=48, d_head=8), "deberta_v2": masked("DebertaV2", pos_att_type=["p2c", "c2p"]),
    "longformer": masked("Longformer", attention_window=4), "fnet": masked("FNet"), "mpnet": masked("MPNet"),
    "convbert": masked("ConvBert"), "nystromformer": masked("Nystromformer", num_landmarks=4, segment_means_seq_len=12),
    "squeezebert": masked("SqueezeBert", embedding_size=32), "yoso": masked("Yoso"), "mobilebert": masked("MobileBert", intra_bottleneck_size=16, embedding_size=32),
    "bert_padded": padded("Bert"), "distilbert_padded": padded("DistilBert", dim=32, hidden_dim=48, n_layers=2, n_heads=4, seq_classif_dropout=0.0),
    "deberta_padded": padded("Deberta"), "gpt2_padded": padded("GPT2"), "llama_padded": padded("Llama"),
    # texts to texts
    "t5": translated("T5"), "mt5_gated": translated("MT5", feed_forward_proj="gated-gelu"), "bart": translated("Bart"),
    "marian": translated("Marian", "MTModel", decoder_start_token_id=0), "pegasus": translated("Pegasus"), "blenderbot": translated("Blenderbot"),
    "m2m_100": translated("M2M100"), "led": translated("LED", attention_window=4, max_encoder_position_embeddings=16, max_decoder_position_embeddings=16),
    "prophetnet": translated("ProphetNet", without=("num_hidden_layers",), num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4),
    # pictures and sound
    "clip": clip(), "siglip": clip("Siglip"), "whisper": whisper, "wav2vec2": wav2vec("ForSequenceClassification"),
    "wav2vec2_ctc": wav2vec("ForCTC"), "segformer": seen("Segformer", hidden_sizes=[8, 16, 16, 32], num_attention_heads=[1, 2, 2, 4], depths=[1, 1, 1, 1]),
    "dinov2": seen("Dinov2", image_size=32, patch_size=8), "beit": seen("Beit", image_size=32, patch_size=8),
    "swinv2": seen("Swinv2", image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4),
    "convnextv2": seen("ConvNextV2", hidden_sizes=[8, 16], depths=[1, 1], num_stages=2),
    "mobilevit": seen("MobileViT", size=64, hidden_sizes=[16, 16, 16], neck_hidden_sizes=[8, 8, 8, 8, 8, 8, 16], patch_size=2),
    "videomae": seen("VideoMAE", "ForVideoClassification", shape=(2, 4, 3, 16, 16), image_size=16, patch_size=8, num_frames=4),
    "deit": seen("DeiT", image_size=32, patch_size=8), "poolformer": seen("PoolFormer", hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1]),
    "vit_hf": seen("ViT", image_size=32, patch_size=8), "levit": seen("Levit", size=128, n=4, without=("drop_path_rate",), hidden_sizes=[16, 32, 32], num_attention_heads=[2, 2, 2],
                                                                     depths=[1, 1, 1], key_dim=[8, 8, 8], image_size=128),
    "dpt": seen("DPT", "ForDepthEstimation", key="predicted_depth", image_size=32, patch_size=8, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3],
                neck_hidden_sizes=[8, 8, 8, 8], fusion_hidden_size=8),
    "ast": seen("AST", "ForAudioClassification", shape=(2, 24, 16), num_mel_bins=16, max_length=24, patch_size=8), "detr": detr,
    # torchvision
    "squeezenet": pictures("squeezenet1_1", num_classes=10), "densenet": pictures("densenet121", num_classes=10),
    "densenet_efficient": pictures("densenet121", num_classes=10, memory_efficient=True),
    "shufflenet": pictures("shufflenet_v2_x0_5", num_classes=10, n=8), "googlenet": pictures("googlenet", num_classes=10, aux_logits=False, init_weights=False, n=4),
    "googlenet_aux": aux_heads("googlenet", 64), "inception_aux": aux_heads("inception_v3", 299), "efficientnet": pictures("efficientnet_b0", num_classes=10),
    "regnet": pictures("regnet_y_400mf", num_classes=10), "mnasnet": pictures("mnasnet0_5", num_classes=10, n=8),
    "mobilenet_v3": pictures("mobilenet_v3_small", num_classes=10), "vgg": pictures("vgg11_bn", num_classes=10, size=32),
    "alexnet": pictures("alexnet", num_classes=10), "convnext": pictures("convnext_tiny", num_classes=10), "swin": pictures("swin_t", num_classes=10),
    "swin_v2": pictures("swin_v2_t", num_classes=10), "raft": raft, "maxvit": pictures("maxvit_t", num_classes=10, size=224, n=1),
    "fcn": pictures("fcn_resnet50", num_classes=5, weights_backbone=None, key="out"),
    "deeplabv3": pictures("deeplabv3_mobilenet_v3_large", num_classes=5, weights_backbone=None, key="out"),
    "lraspp": pictures("lraspp_mobilenet_v3_large", num_classes=5, weights_backbone=None, key="out"),
}

# Families whose sizes have names alone, small enough to compile in seconds.
SMALL = {"swin_small": small(small_swin), "convnext_small": small(small_convnext), "densenet_small": small(small_densenet),
         "efficientnet_small": small(small_efficientnet), "maxvit_small": small(small_maxvit), "googlenet_small": heads(small_googlenet),
         "raft_small": small_raft}
# Those that a test trains in f32 and bf16.
TESTED = ("llama3", "qwen2", "qwen3", "gemma2", "gemma3", "mistral", "phi", "phi3", "mixtral", "deepseek_v3", "gpt_oss", "t5", "bart", "clip",
          "whisper", "wav2vec2_ctc", "detr", "segformer", *SMALL, "gat", "pinn", "wgan_gp", "glow", "fno", "critics")
DISTINCT = ("mixtral", "bart", "efficientnet_small")  # a part of them with most kinds of kernels
