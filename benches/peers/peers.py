"""Oubliette beside hnswlib and FAISS, in turns, each on one thread. Times are those of the processor.

    python3 -m venv venv && venv/bin/pip install numpy hnswlib faiss-cpu
    cargo build --release --features cli
    venv/bin/python benches/peers/peers.py import search bits [--rows 20000 200000] [--data DIR] [--cli PATH]

`import` measures `oubliette import` of texts and vectors, with the default policy and with `--no-dedup`, against the time in
which hnswlib builds its graph (M 16, efConstruction 200) from the vectors alone; and the file against its live bytes.
`search` measures the ten nearest, the median of single searches: `oubliette eval` with the default policy and effort, hnswlib up to
the shortest list that keeps the recall, and FAISS's scan of one bit a dimension (`IndexRaBitQFastScan`) alone and with 200 candidates
ranked on their f32 vectors. `bits` tells of how many vectors a second stage must read more than the code, after codes of one bit and of two
bits a dimension. `clusters` tells which share of the rows an inverted file would read. Up to the number of real vectors rows are real; beyond, they are blends of two. `--side-by-side 4` puts
four vectors into one, so that it has 1,536 dimensions.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import faiss
import hnswlib
import numpy as np

HERE = Path(__file__).resolve().parent
FILES = ["churn_gastown_add_texts", "debian_dev_desc", "dedup_msrp_train_texts", "locomo_dev_memories", "loghub_dev_distinct"]
WORDS = "alpha beta gamma delta server deploy user likes coffee meeting project build test fails green blue city travel plan note".split()
K = 10


def vectors(args, rows, queries):
    """Rows and queries that are not among them."""
    folder, wide = args.data, args.side_by_side
    real = np.concatenate([np.load(folder / f"{name}_384.f32.npy") for name in FILES]).astype(np.float32)
    rng = np.random.default_rng(1)
    real = np.unique(real, axis=0)
    rng.shuffle(real)
    asked, real = real[:queries], real[queries:]
    if rows > len(real):
        a, b = (real[rng.integers(len(real), size=rows - len(real))] for _ in range(2))
        real = np.concatenate([real, 0.6 * a + 0.4 * b])
    real = real[:rows]
    turned = lambda x: np.concatenate([x[rng.permutation(len(x))] if part else x for part in range(wide)], axis=1)
    real, asked = turned(real), turned(asked)
    return tuple((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in (real, asked))


def of_processor(call):
    """What a call takes of the processor, in seconds, its child processes included."""
    used = lambda who: sum(resource.getrusage(who)[:2])
    before = used(resource.RUSAGE_SELF) + used(resource.RUSAGE_CHILDREN)
    answer = call()
    return used(resource.RUSAGE_SELF) + used(resource.RUSAGE_CHILDREN) - before, answer


def graph(rows):
    index = hnswlib.Index("ip", rows.shape[1])
    index.init_index(len(rows), M=16, ef_construction=200, random_seed=1)
    index.set_num_threads(1)
    index.add_items(rows, num_threads=1)
    return index


def write(folder, rows):
    np.save(folder / "rows.npy", rows)
    rng = np.random.default_rng(2)
    with open(folder / "rows.jsonl", "w") as lines:
        for at in range(len(rows)):
            lines.write(json.dumps({"text": f"{' '.join(rng.choice(WORDS, size=12))} item {at}"}) + "\n")


def imported(cli, folder, *options):
    file = folder / "m.oub"
    file.unlink(missing_ok=True)
    ask = [cli, "--db", file]
    subprocess.run([*ask, "--quiet", "import", folder / "rows.jsonl", "--vectors", folder / "rows.npy", *options],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return lambda: json.loads(subprocess.run([*ask, "stats", "--json"], check=True, capture_output=True).stdout)["bytes"]


def part_import(asked, folder):
    print("| rows | what | seconds | hnswlib / it | file / live |\n|---|---|---|---|---|")
    for count in asked.rows:
        rows, _ = vectors(asked, count, 1000)
        write(folder, rows)
        peer, _ = of_processor(lambda: graph(rows))
        print(f"| {count} | hnswlib, its build alone | {peer:.1f} | | |")
        for what, options in [("import", []), ("import --no-dedup", ["--no-dedup"])]:
            took, size = of_processor(lambda: imported(asked.cli, folder, *options))
            size = size()
            print(f"| {count} | {what} | {took:.1f} | {peer / took:.2f} | {size['file'] / size['live']:.2f} |", flush=True)


def recall(found, exact):
    return np.mean([len(set(a) & set(b)) / K for a, b in zip(found, exact)])


def searched(queries, search):
    """Microseconds of a search, the median, and what was found."""
    took, found = [], []
    for query in queries:
        begun = time.perf_counter()
        found.append(search(query[None]))
        took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1e6, found


def evaluated(cli, folder, rows, queries):
    """The median of a search of ours in microseconds, and its recall."""
    write(folder, rows)
    imported(cli, folder, "--no-dedup")
    np.save(folder / "queries.npy", queries)
    (folder / "queries.jsonl").write_text('{"query": ""}\n' * len(queries))
    ask = [cli, "--db", folder / "m.oub", "eval", "--queries", folder / "queries.jsonl", "--vectors", folder / "queries.npy", "--json"]
    found = json.loads(subprocess.run(ask, check=True, capture_output=True).stdout)
    return found["p50_us"], found["recall_at_k"]


def part_search(asked, folder):
    faiss.omp_set_num_threads(1)
    print("| rows | what | µs | recall@10 |\n|---|---|---|---|")
    for count in asked.rows:
        rows, queries = vectors(asked, count, 300)
        exact = np.argsort(-(queries @ rows.T), axis=1)[:, :K]
        took, kept = evaluated(asked.cli, folder, rows, queries)
        print(f"| {count} | Oubliette | {took} | {kept:.4f} |", flush=True)
        index = graph(rows)
        for ef in [10, 20, 40, 80, 160, 320, 640, 1280]:
            index.set_ef(ef)
            took, found = searched(queries, lambda query: index.knn_query(query, k=K, num_threads=1)[0][0])
            kept = recall(found, exact)
            print(f"| {count} | hnswlib, ef {ef} | {took:.0f} | {kept:.4f} |", flush=True)
            if kept >= 0.999:
                break
        flat = faiss.IndexRaBitQFastScan(rows.shape[1], faiss.METRIC_INNER_PRODUCT)
        flat.train(rows)
        flat.add(rows)
        took, _ = searched(queries, lambda query: flat.search(query, 200)[1][0])
        print(f"| {count} | FAISS, one bit alone | {took:.0f} | |")
        ranked = faiss.IndexRefineFlat(flat, faiss.swig_ptr(rows))
        ranked.k_factor = 200 / K
        took, found = searched(queries, lambda query: ranked.search(query, K)[1][0])
        print(f"| {count} | FAISS, one bit, 200 ranked | {took:.0f} | {recall(found, exact):.4f} |", flush=True)


def code(x, bits):
    """Codes of unit vectors, and the cosine of each code and its vector: signs, or four levels with the best of some steps."""
    best, codes = np.full(len(x), -1.0), np.zeros_like(x)
    for step in [1.0] if bits == 1 else np.array([0.8, 0.9, 1.0, 1.1, 1.2]) / np.sqrt(x.shape[1]):
        levels = np.clip(np.floor(x / step) + 0.5, 0.5 - 2 ** (bits - 1), 2 ** (bits - 1) - 0.5)
        cosine = (levels * x).sum(1) / np.linalg.norm(levels, axis=1)
        codes[cosine > best], best = levels[cosine > best], np.maximum(best, cosine)
    return codes, best


def part_bits(asked, folder):
    print("| rows | bits a dimension | cosine of code and vector | vectors within 3.7 deviations of the tenth: median | p90 |\n|---|---|---|---|---|")
    for count in asked.rows:
        rows, queries = vectors(asked, count, 100)
        center = rows[:4096].mean(0)
        turn, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((rows.shape[1],) * 2).astype(np.float32))
        length = np.linalg.norm(rows - center, axis=1)
        turned = ((rows - center) / length[:, None]) @ turn
        for bits in [1, 2]:
            codes, cosine = code(turned, bits)
            factor = length / (cosine * np.linalg.norm(codes, axis=1))
            error = length * np.sqrt((1 - cosine**2) / cosine**2 / (rows.shape[1] - 1))
            within = []
            for query in queries - center:
                tenth = np.sort((rows - center) @ query)[-K]
                likely = factor * (codes @ (query @ turn)) + 3.7 * error * np.linalg.norm(query)
                within.append(np.count_nonzero(likely >= tenth))
            print(f"| {count} | {bits} | {cosine.mean():.3f} | {np.median(within):.0f} | {np.percentile(within, 90):.0f} |", flush=True)


def part_clusters(asked, folder):
    """What an inverted file could leave out: clusters in the order of their centroids, and those beyond a bisector."""
    faiss.omp_set_num_threads(1)
    print("| rows | clusters | rows to read for all ten: median | p90 | for 99.9 % of neighbours | rows a cosine of 0.82 needs | 0.95 |\n|---|---|---|---|---|---|---|")
    for count in asked.rows:
        rows, queries = vectors(asked, count, 300)
        nearest = np.argpartition(-(queries @ rows.T), K, axis=1)[:, :K]
        for clusters in [256, 1024]:
            means = faiss.Kmeans(rows.shape[1], clusters, niter=8, seed=1, spherical=True, max_points_per_centroid=100)
            means.train(rows)
            center = means.centroids
            near = rows @ center.T
            own = near.argmax(1)
            size = np.bincount(own, minlength=clusters)
            order = np.argsort(-(queries @ center.T), axis=1)
            read = np.cumsum(size[order], axis=1) / count
            place = np.argsort(order, axis=1)
            needed = np.stack([read[at, place[at, own[found]]] for at, found in enumerate(nearest)])
            some = np.random.default_rng(4).choice(count, 1000, replace=False)
            apart = np.sqrt(np.maximum(2 - 2 * center @ center.T, 1e-9))[own[some]]
            # Nothing nearer than a bisector lies beyond it.
            bisector = (near[some, own[some]][:, None] - near[some]) / apart
            certain = [((bisector <= np.sqrt(2 - 2 * cosine)) * size).sum(1).mean() / count for cosine in [0.82, 0.95]]
            shown = [np.median(needed.max(1)), np.quantile(needed.max(1), 0.9), np.quantile(needed, 0.999), *certain]
            print(f"| {count} | {clusters} | {' | '.join(f'{share:.3f}' for share in shown)} |", flush=True)


def main():
    parts = {"import": part_import, "search": part_search, "bits": part_bits, "clusters": part_clusters}
    asks = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asks.add_argument("parts", nargs="+", choices=parts)
    asks.add_argument("--rows", nargs="+", type=int, default=[20_000, 200_000])
    asks.add_argument("--data", type=Path, default=HERE / "../../../shared/data")
    asks.add_argument("--side-by-side", type=int, default=1)
    asks.add_argument("--cli", type=Path, default=HERE / "../../target/release/oubliette")
    asked = asks.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for part in asked.parts:
            parts[part](asked, Path(folder))


if __name__ == "__main__":
    main()
