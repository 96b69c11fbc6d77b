"""A small GPT over letters, which goes on when a worker dies: gpt.py [--help].

    hvd-elastic -np 2 --min-np 1 -H 127.0.0.1:2 python gpt.py

The five lines that end with "# elastic" are what hvd-elastic adds to a program with DistributedDataParallel.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import hvd_elastic.torch  # elastic
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description="Trains a GPT to write letters.")
parser.add_argument("--text", type=Path, default=Path(__file__).parents[2] / "examples" / "text.txt")
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--context", type=int, default=64, help="how many letters the model sees")
parser.add_argument("--batch", type=int, default=12, help="of each worker")
parser.add_argument("--print-every", type=int, default=10)
args = parser.parse_args()


class Text(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Pieces of a text, and the same pieces one letter later."""

    def __init__(self, text: str, context: int) -> None:
        self.letters = sorted(set(text))
        self.codes = torch.tensor([self.letters.index(letter) for letter in text])
        self.context = context
        self.stride = max(1, context // 8)

    def __len__(self) -> int:
        return (len(self.codes) - self.context - 1) // self.stride

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        at = number * self.stride
        piece = self.codes[at : at + self.context + 1]
        return piece[:-1], piece[1:]


class Block(nn.Module):
    """Attention to the letters before, and a network for each letter."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        parts = self.attention(self.before_attention(x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))
        seen = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(rows, length, width))
        result: torch.Tensor = x + self.network(self.before_network(x))
        return result


class GPT(nn.Module):
    """Scores for the letter behind each letter."""

    def __init__(self, letters: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.end, self.score = nn.LayerNorm(width), nn.Linear(width, letters)
        for name, param in self.named_parameters():
            if name.endswith("weight") and param.dim() == 2:
                nn.init.normal_(param, std=0.02)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        x = self.letter(codes) + self.place(torch.arange(codes.shape[1]))
        result: torch.Tensor = self.score(self.end(self.blocks(x)))
        return result


@torch.no_grad()
def written(model: GPT, text: Text, length: int) -> str:
    """What the model writes, beginning with the first letters of the text."""
    codes = text.codes[:8].tolist()
    while len(codes) < length:
        scores = model(torch.tensor([codes[-text.context :]]))[0, -1]
        codes.append(int(torch.multinomial((2.0 * scores).softmax(0), 1)))
    return "".join(text.letters[code] for code in codes)


dist.init_process_group("hvd")
torch.manual_seed(1)
text = Text(args.text.read_text(), args.context)
model = GPT(len(text.letters), args.context, args.width, args.heads, args.layers)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
sampler = hvd_elastic.torch.Sampler(text, batch_size=args.batch)  # elastic
loader = DataLoader(text, batch_sampler=sampler)
state = hvd_elastic.torch.State(model=model, optimizer=optimizer, steps=0)  # elastic


@hvd_elastic.run  # elastic
def train(state: hvd_elastic.torch.State) -> None:
    ddp = DistributedDataParallel(model, init_sync=False)
    print("rank", dist.get_rank(), "of", dist.get_world_size(), "from step", state.steps, flush=True)
    while sampler.epoch < args.epochs:
        for letters, following in state.batches(loader):  # elastic
            optimizer.zero_grad()
            loss = cross_entropy(ddp(letters).flatten(0, 1), following.flatten()) * sampler.weight
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            state.steps += 1
            if state.steps % args.print_every == 0:
                mean = loss.detach().clone()
                dist.all_reduce(mean, op=dist.ReduceOp.AVG)
                if dist.get_rank() == 0:
                    print("step", state.steps, "loss", round(mean.item(), 3), flush=True)


train(state)
if dist.get_rank() == 0:
    print("after", state.steps, "steps it writes:", written(model, text, 120), flush=True)
