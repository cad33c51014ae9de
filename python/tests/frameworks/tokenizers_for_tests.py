"""A small tokenizer of Hugging Face `tokenizers`, trained without a network."""

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

TEXTS = [" ".join(f"word{i * j % 11}" for j in range(i % 7)) for i in range(100)]  # some are empty


def trained():
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(TEXTS[:50], trainers.BpeTrainer(
        vocab_size=40, special_tokens=["[UNK]"], show_progress=False))
    return tokenizer
