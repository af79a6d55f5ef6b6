#!/usr/bin/env bash
# Everything that needs a real GPU, in one call, from a build that was made elsewhere.
set -uo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/gpu-check.sh pack                       from a built tree: what the GPU machine needs, into build/gpu (at most 64 MB)
       scripts/gpu-check.sh PART… [--out DIR]          there: runs parts and writes DIR/gpu-check.{json,txt} (default build/gpu/out)

The GPU machine needs NVIDIA's driver and NVRTC (of a CUDA toolkit or of PyPI's wheels, which come with PyTorch).

parts, each under 9 minutes, each going on after a piece that failed and naming it:
  correctness   devices, the test programs, op parity on every GPU device, lockstep training, three epochs of the CNN
  sanitizer     compute-sanitizer (memcheck, racecheck, initcheck) over kernels on cuda
  bench         training steps and ops; against PyTorch where python3 has it
Exit code: 0 all pieces passed, 1 a piece failed, 2 there is no GPU to check or a wrong argument.
TEXT
}

pack() {
  local from=build/release to=build/gpu name lib
  [ -x $from/bin/tutti ] || { echo "gpu-check: $from/bin/tutti is not built (scripts/quickstart.sh)" >&2; exit 2; }
  rm -rf $to && mkdir -p $to/bin $to/lib/tutti/plugins $to/tests $to/data/fashion-mnist
  cp $from/bin/{tutti,step_bench,op_bench} $to/bin/
  cp -P $from/lib/libtutti.so* $to/lib/
  for name in cuda reference opencl vulkan; do  # oneDNN's library alone is 55 MB
    cp $from/lib/tutti/plugins/{libtutti_$name.so,$name.json} $to/lib/tutti/plugins/ || exit 2
  done
  for name in cuda_test cuda_device_test op_parity golden_test; do cp $from/tests/$name $to/tests/; done
  cp /usr/share/datasets/fashion-mnist/*ubyte* $to/data/fashion-mnist/ 2>/dev/null || echo "gpu-check: without Fashion-MNIST"
  # Libraries of this system that another may lack; never the C library, nor what a GPU's driver brings.
  for lib in $(ldd $to/bin/* $to/tests/* $to/lib/tutti/plugins/*.so | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u); do
    case "$lib" in
      */libc.so.* | */libm.so.* | */libdl.so.* | */libpthread.so.* | */librt.so.* | */libcuda.so* | */libtutti.so* | */ld-linux*) ;;
      *) cp -L "$lib" $to/lib/ ;;
    esac
  done
  find $to/bin $to/tests $to/lib -type f \( -perm -u+x -o -name '*.so*' \) -exec strip --strip-unneeded {} + 2>/dev/null
  local size
  size=$(du -sm $to | cut -f1)
  echo "gpu-check: $to: $size MB"
  [ "$size" -le 64 ] || { echo "gpu-check: more than 64 MB" >&2; exit 1; }
}

parts=()
out=build/gpu/out
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    pack) pack; exit 0 ;;
    correctness | sanitizer | bench) parts+=("$1") ;;
    all) parts=(correctness sanitizer bench) ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    *) echo "gpu-check: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || { usage >&2; exit 2; }

here=$PWD/build/gpu
[ -x "$here/bin/tutti" ] || { echo "gpu-check: $here is missing; scripts/gpu-check.sh pack makes it" >&2; exit 2; }
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TUTTI_PLUGIN_PATH=$here/lib/tutti/plugins
# NVRTC, cuBLASLt and cuDNN as PyPI's wheels bring them (PyTorch's do), behind the system's own.
for folder in $(python3 -c 'import glob, site; print(*(p for s in site.getsitepackages() for p in glob.glob(s + "/nvidia/*/lib")))' 2>/dev/null); do
  LD_LIBRARY_PATH+=:$folder
done
[ -d "$here/data/fashion-mnist" ] && export TUTTI_DATA_DIR=$here/data
export TUTTI_CACHE=${TUTTI_CACHE:-$here/cache}
mkdir -p "$out" "$TUTTI_CACHE"
tutti=$here/bin/tutti
pieces=$out/pieces.jsonl
: >"$pieces"
failed=0

# piece PART NAME LIMIT COMMAND…: runs it, keeps its output, says how it went.
piece() {
  local part=$1 name=$2 limit=$3 start=$SECONDS code
  shift 3
  timeout "$limit" "$@" >"$out/$part-$name.log" 2>&1
  code=$?
  [ $code -eq 0 ] || failed=1
  printf '%-12s %-28s %s  %d s\n' "$part" "$name" "$([ $code -eq 0 ] && echo ok || echo "FAILED ($code)")" $((SECONDS - start)) | tee -a "$out/gpu-check.txt"
  printf '{"part": "%s", "name": "%s", "exit": %d, "seconds": %d}\n' "$part" "$name" $code $((SECONDS - start)) >>"$pieces"
}

gpus=$("$tutti" devices --json | python3 -c '
import json, sys
print(" ".join(d["id"] for d in json.load(sys.stdin)["devices"] if d["usable"] and d["kind"] in ("discrete", "integrated")))')
{ date -u '+%Y-%m-%d %H:%M UTC'; nvidia-smi -L 2>/dev/null; "$tutti" devices --explain; } >"$out/gpu-check.txt"
cat "$out/gpu-check.txt"
if [ -z "$gpus" ]; then
  echo "gpu-check: no device: no plugin offers a GPU here; nothing was checked" | tee -a "$out/gpu-check.txt"
  exit 2
fi

correctness() {
  local d
  piece correctness cuda_test 60 "$here/tests/cuda_test"
  piece correctness cuda_device_test 90 "$here/tests/cuda_device_test"
  piece correctness golden 60 env TUTTI_PLUGINS=cuda,reference "$here/tests/golden_test"
  for d in $gpus; do
    piece correctness "op_parity-${d//:/-}" 120 env TUTTI_PLUGINS="${d%%:*},reference" "$here/tests/op_parity"
    piece correctness "parity-${d//:/-}" 150 "$tutti" parity --device "$d" --json
  done
  piece correctness lockstep-mlp 60 "$tutti" parity --device "${gpus%% *}" --model mlp --steps 60
  piece correctness lockstep-cnn 120 "$tutti" parity --device "${gpus%% *}" --model cnn --steps 20
  for d in $gpus; do
    piece correctness "cnn-${d//:/-}" 90 "$tutti" train cnn --epochs 3 --device "$d" --json --quiet
    piece correctness "cnn-again-${d//:/-}" 90 "$tutti" train cnn --epochs 1 --device "$d" --json --quiet
  done
  piece correctness no-graph 60 env TUTTI_CUDA_GRAPH=0 "$tutti" train mlp --epochs 1 --device cuda --json --quiet
  piece correctness rendered-only 60 env TUTTI_CUDA_LIBRARIES=0 "$tutti" parity --device cuda --quick
}

sanitizer() {
  local tool bin
  bin=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  if [ -z "$bin" ]; then
    echo "sanitizer    not run: compute-sanitizer is not installed" | tee -a "$out/gpu-check.txt"
    return
  fi
  for tool in memcheck racecheck initcheck; do
    piece sanitizer $tool 170 env TUTTI_PLUGINS=cuda,reference "$bin" --tool $tool --error-exitcode 9 "$tutti" parity --quick --device cuda \
      --ops add,matmul,conv2d,max_pool2d,sum,softmax,gather,scatter_add,adam
  done
}

bench() {
  local d
  for d in $gpus; do
    piece bench "steps-${d//:/-}" 50 "$here/bin/step_bench" --benchmark_filter="/$d" --benchmark_format=json
    piece bench "matmul-${d//:/-}" 20 "$here/bin/op_bench" --device "$d" --op matmul --shape 4096x4096x4096 --json
    piece bench "conv-${d//:/-}" 20 "$here/bin/op_bench" --device "$d" --op conv2d --shape 64,32,14,14,64,3 --json
  done
  if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    # torch.compile takes a while at each start, so there is one round, and fewer modes for the second precision.
    local compare=(python3 bench/compare.py --python python3 --device cuda --peer-device cuda --rounds 1 --binary "$tutti" --json)
    piece bench torch 200 "${compare[@]}" --peer-modes eager,compile,reduce-overhead
    piece bench torch-tf32 130 "${compare[@]}" --tf32 --peer-modes eager,reduce-overhead
  else
    echo "bench        torch: not run, python3 has no PyTorch with CUDA" | tee -a "$out/gpu-check.txt"
  fi
}

for part in "${parts[@]}"; do $part; done
python3 - "$out" <<'PY'
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
pieces = [json.loads(line) for line in (out / "pieces.jsonl").read_text().splitlines()]
for p in pieces:  # what a piece printed as JSON comes along
    try:
        p["result"] = json.loads((out / f"{p['part']}-{p['name']}.log").read_text())
    except ValueError:
        pass
(out / "gpu-check.json").write_text(json.dumps({"summary": (out / "gpu-check.txt").read_text().splitlines(), "pieces": pieces}, indent=1) + "\n")
PY
echo "gpu-check: $out/gpu-check.json"
exit $failed
