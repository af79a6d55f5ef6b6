#!/usr/bin/env bash
# Everything that needs a real GPU, in one call, from a build that was made elsewhere.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

usage() {
  cat <<'TEXT'
usage: scripts/gpu-check.sh pack                       from a built tree: what the GPU machine needs, into build/gpu (at most 64 MB)
       scripts/gpu-check.sh PART… [--out DIR]          there: runs parts; DIR/gpu-check.{json,txt} (default build/gpu/out) have
                                                       the newest run of every part that was ever run into DIR

The GPU machine needs python3, NVIDIA's driver, and NVRTC (of a CUDA toolkit or of PyPI's wheels, which come with PyTorch).

parts, each ended after 9 minutes at the latest, each going on after a piece that failed and naming it:
  correctness   devices, the test programs, op parity on every GPU device (CUDA, Vulkan, OpenCL), lockstep training, the
                same bits from run to run, with and without a graph and on several streams, three epochs of the CNN
  sanitizer     compute-sanitizer (memcheck, racecheck, initcheck) over kernels on cuda
  bench         training steps, first steps, ops, the optimizer's share of the copy bandwidth; against PyTorch in f32 where
                python3 has it
  bench-tf32    against PyTorch in TF32
  bench-bf16    against PyTorch in bf16
  all           these five
Exit code: 0 everything that was asked for ran and passed, 1 a piece failed, 2 there is no GPU to check or a wrong
argument, 3 nothing failed but pieces were skipped, which the last lines name.
TEXT
}

die() {
  echo "gpu-check: $2" >&2
  exit "$1"
}

pack() {
  local from=build/release to=build/gpu name lib size
  [ -x $from/bin/tutti ] || die 2 "$from/bin/tutti is not built (scripts/build.sh)"
  must() { "$@" || die 1 "failed: $*"; }
  must rm -rf $to
  must mkdir -p $to/bin $to/lib/tutti/plugins $to/tests $to/data/fashion-mnist
  must cp $from/bin/{tutti,step_bench,op_bench} $to/bin/
  must cp -P $from/lib/libtutti.so* $to/lib/
  for name in cuda reference opencl vulkan; do  # oneDNN's library alone is 55 MB
    must cp $from/lib/tutti/plugins/{libtutti_$name.so,$name.json} $to/lib/tutti/plugins/
  done
  for name in cuda_test cuda_device_test op_parity golden_test; do must cp $from/tests/$name $to/tests/; done
  if ls /usr/share/datasets/fashion-mnist/*ubyte* >/dev/null 2>&1; then
    must cp /usr/share/datasets/fashion-mnist/*ubyte* $to/data/fashion-mnist/
  else
    rmdir $to/data/fashion-mnist
    echo "gpu-check: without Fashion-MNIST: its runs will be skipped there"
  fi
  # Libraries of this system that another may lack; never the C library, nor what a GPU's driver brings.
  for lib in $(ldd $to/bin/* $to/tests/* $to/lib/tutti/plugins/*.so | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u); do
    case "$lib" in
      */libc.so.* | */libm.so.* | */libdl.so.* | */libpthread.so.* | */librt.so.* | */libcuda.so* | */libtutti.so* | */ld-linux*) ;;
      *) must cp -L "$lib" $to/lib/ ;;
    esac
  done
  lib=$(ldconfig -p | awk '/libvulkan\.so\.1 / {print $NF; exit}')  # opened at run time; the GPU machine's own goes first
  if [ -n "$lib" ]; then
    must mkdir -p $to/loaders
    must cp -L "$lib" $to/loaders/libvulkan.so.1
  fi
  find $to/bin $to/tests $to/lib -type f \( -perm -u+x -o -name '*.so*' \) -exec strip --strip-unneeded {} + 2>/dev/null
  size=$(du -sm $to | cut -f1)
  echo "gpu-check: $to: $size MB"
  if [ "$size" -gt 64 ] && [ -d $to/data/fashion-mnist ]; then
    must rm -r $to/data/fashion-mnist
    size=$(du -sm $to | cut -f1)
    echo "gpu-check: that is too much; without Fashion-MNIST, whose runs will be skipped there: $size MB"
  fi
  [ "$size" -le 64 ] || die 1 "more than 64 MB"
}

parts=()
out=build/gpu/out
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    pack) pack; exit 0 ;;
    correctness | sanitizer | bench | bench-tf32 | bench-bf16) parts+=("$1") ;;
    all) parts=(correctness sanitizer bench bench-tf32 bench-bf16) ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    *) echo "gpu-check: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || { usage >&2; exit 2; }

here=$PWD/build/gpu
[ -x "$here/bin/tutti" ] || die 2 "$here is missing; scripts/gpu-check.sh pack makes it"
command -v python3 >/dev/null || die 2 "python3 is missing"
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TUTTI_PLUGIN_PATH=$here/lib/tutti/plugins
# NVRTC, cuBLASLt and cuDNN as PyPI's wheels bring them (PyTorch's do), behind the system's own.
for folder in $(python3 -c 'import glob, site; print(*(p for s in site.getsitepackages() for p in glob.glob(s + "/nvidia/*/lib")))' 2>/dev/null); do
  LD_LIBRARY_PATH+=:$folder
done
LD_LIBRARY_PATH+=:$here/loaders
[ -d "$here/data/fashion-mnist" ] && export TUTTI_DATA_DIR=$here/data
export TUTTI_CACHE=${TUTTI_CACHE:-$here/cache}
mkdir -p "$out/pieces" "$TUTTI_CACHE" || die 2 "$out cannot be made"
# NVIDIA's OpenCL and Vulkan drivers, where containers have the library but not the file that names it.
has_library() { python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$1" 2>/dev/null; }
if ! ls /etc/OpenCL/vendors/*.icd >/dev/null 2>&1 && has_library libnvidia-opencl.so.1; then
  mkdir -p "$out/vendors" && echo libnvidia-opencl.so.1 >"$out/vendors/nvidia.icd"
  OCL_ICD_VENDORS=$(realpath "$out/vendors")
  export OCL_ICD_VENDORS
fi
if ! ls /etc/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1 && has_library libGLX_nvidia.so.0; then
  echo '{"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0"}}' >"$out/nvidia_icd.json"
  VK_DRIVER_FILES=$(realpath "$out/nvidia_icd.json")
  export VK_DRIVER_FILES
fi

tutti=$here/bin/tutti
part='' part_end=0 failed=0 skipped=()

# told NAME STATUS EXIT SECONDS WHY: one line for people, one for gpu-check.json.
told() {
  printf '%-12s %-28s %s  %d s%s\n' "$part" "$1" "$([ "$2" = failed ] && echo "FAILED ($3)" || echo "$2")" "$4" "${5:+: $5}" | tee -a "$out/pieces/$part.txt"
  python3 -c 'import json, sys; p, n, s, e, t, w = sys.argv[1:]
print(json.dumps({"part": p, "name": n, "status": s, "exit": int(e), "seconds": int(t), "why": w}))' \
    "$part" "$1" "$2" "$3" "$4" "${5:-}" >>"$out/pieces/$part.jsonl"
}

# skip NAME WHY
skip() {
  skipped+=("$part $1: $2")
  told "$1" skipped 0 0 "$2"
}

left() { echo $((part_end - SECONDS)); }

# piece NAME LIMIT COMMAND…: runs it for LIMIT seconds at most, or what is left of the part; keeps its output, says how
# it went. Exit code 3 of a command: it left something out.
piece() {
  local name=$1 limit=$2 start=$SECONDS code log=$out/$part.$1.log why=''
  shift 2
  if [ "$(left)" -lt 10 ]; then
    skip "$name" "the part's time is up"
    return 1
  fi
  [ "$limit" -le "$(left)" ] || limit=$(left)
  timeout -k 5 "$limit" "$@" >"$log" 2>"$log.err"
  code=$?
  if [ $code -eq 124 ] || [ $code -eq 137 ]; then why="ended after $limit s"; fi
  if [ $code -eq 3 ]; then
    skip "$name" "in part: $(tail -n 1 "$log.err" | cut -c1-200)"
  elif [ $code -ne 0 ]; then
    failed=1
    told "$name" failed $code $((SECONDS - start)) "${why:-$(tail -n 1 "$log.err" | cut -c1-200)}"
  else
    told "$name" ok 0 $((SECONDS - start))
    local count
    count=$(grep -c '^\[  SKIPPED \] .* ms)' "$log")
    [ "$count" -eq 0 ] || skip "$name-tests" "$count of its tests skipped themselves; see $log"
  fi
  return $code
}

# same_bits NAME PIECE…: whether those pieces, which printed the JSON of training runs, ended in the same state.
same_bits() {
  local name=$1 p logs=()
  shift
  for p in "$@"; do
    [ -e "$out/$part.$p.log" ] || { skip "$name" "$p did not run"; return; }
    logs+=("$out/$part.$p.log")
  done
  piece "$name" 20 python3 -c 'import json, sys
found = {path: json.load(open(path))["state_hash"] for path in sys.argv[1:]}
for path, value in found.items(): print(value, path)
if len(set(found.values())) != 1: sys.exit("not the same bits: " + ", ".join(found.values()))' "${logs[@]}"
}

listed=$("$tutti" devices --json 2>/dev/null)
gpus=$(python3 -c '
import json, sys
try:
    print(*(d["id"] for d in json.loads(sys.argv[1])["devices"] if d["usable"] and d["kind"] in ("discrete", "integrated")))
except ValueError:
    sys.exit("gpu-check: tutti devices --json printed no JSON")' "$listed") || exit 2
{ date -u '+%Y-%m-%d %H:%M UTC'; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null; "$tutti" devices --explain; } >"$out/pieces/devices.txt" 2>&1
cat "$out/pieces/devices.txt"
if [ -z "$gpus" ]; then
  echo "gpu-check: no device: no plugin offers a GPU here; nothing was checked"
  exit 2
fi
cuda=$(tr ' ' '\n' <<<"$gpus" | grep -m1 '^cuda:')

# offered PLUGIN: whether one of its devices is a GPU; else says that it was skipped.
offered() {
  grep -qE "(^| )$1:" <<<"$gpus" || { skip "$1" "the $1 plugin offers no GPU here (see the list of devices)"; return 1; }
}

correctness() {
  local d name model
  if offered cuda; then
    piece cuda_test 60 "$here/tests/cuda_test"
    piece cuda_device_test 90 "$here/tests/cuda_device_test"
    piece golden 60 env TUTTI_PLUGINS=cuda,reference "$here/tests/golden_test"
    for model in mlp cnn; do
      local run=("$tutti" train "$model" --steps 60 --device "$cuda" --json --quiet --no-eval)
      [ $model = mlp ] && run+=(--data synthetic:784:10) || run+=(--data synthetic:1x28x28:10)
      piece "$model-one" 30 "${run[@]}"
      piece "$model-two" 30 "${run[@]}"
      piece "$model-no-graph" 30 env TUTTI_CUDA_GRAPH=0 "${run[@]}"
      piece "$model-streams-2" 30 env TUTTI_CUDA_STREAMS=2 "${run[@]}"
      piece "$model-streams-4" 30 env TUTTI_CUDA_STREAMS=4 "${run[@]}"
      same_bits "same-bits-$model" "$model"-{one,two,no-graph,streams-2,streams-4}
    done
    piece lockstep-mlp 60 "$tutti" parity --device "$cuda" --model mlp --steps 60
    piece lockstep-cnn 120 "$tutti" parity --device "$cuda" --model cnn --steps 20
    piece rendered-only 60 env TUTTI_CUDA_LIBRARIES=0 "$tutti" parity --device "$cuda" --quick
  fi
  offered vulkan
  offered opencl
  for d in $gpus; do
    name=${d//:/-}
    piece "parity-$name" 120 "$tutti" parity --device "$d" --json
    piece "op_parity-$name" 90 env TUTTI_PLUGINS="${d%%:*},reference" "$here/tests/op_parity"
  done
  if [ -n "${TUTTI_DATA_DIR:-}" ] && [ -n "$cuda" ]; then
    piece cnn-3-epochs 90 "$tutti" train cnn --epochs 3 --device "$cuda" --json --quiet
    piece cnn-3-epochs-again 90 "$tutti" train cnn --epochs 3 --device "$cuda" --json --quiet
    same_bits same-bits-cnn-3-epochs cnn-3-epochs cnn-3-epochs-again
  else
    skip cnn-3-epochs "it needs Fashion-MNIST and a CUDA device"
  fi
}

sanitizer() {
  local tool bin log
  offered cuda || return
  bin=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  for tool in memcheck racecheck initcheck; do
    if [ -z "$bin" ]; then
      skip $tool "compute-sanitizer is not installed"
      continue
    fi
    # Our own kernels are what is checked: NVIDIA's libraries are left out.
    log=$out/$part.$tool.log
    if ! timeout -k 5 60 "$bin" --tool $tool --error-exitcode 9 "$tutti" parity --quick --jobs 0 --device "$cuda" --ops relu >"$log" 2>&1 &&
      ! grep -q 'ERROR SUMMARY: [1-9]' "$log"; then
      skip $tool "refused: $(grep -m1 -iE 'error|not supported|permission' "$log" | cut -c1-200)"
      continue
    fi
    piece $tool 160 env TUTTI_PLUGINS=cuda,reference TUTTI_CUDA_LIBRARIES=0 "$bin" --tool $tool --error-exitcode 9 \
      "$tutti" parity --quick --jobs 0 --device "$cuda" --ops add,matmul,conv2d,max_pool2d,sum,softmax,gather,scatter_add,adam
  done
}

# against_torch PRECISION: as many of PyTorch's modes as the part's time allows.
against_torch() {
  if ! python3 -c 'import torch, numpy; assert torch.cuda.is_available()' 2>/dev/null; then
    skip "torch-$1" "python3 has no PyTorch with CUDA"
    return
  fi
  piece "torch-$1" 540 python3 bench/compare.py --python python3 --device "$cuda" --peer-device cuda --rounds 1 --binary "$tutti" \
    --cases "$2" --precisions "$1" --deadline $(($(left) - 20)) --json \
    --peer-modes eager,compile,reduce-overhead,graph,graph+channels-last,compile+channels-last,max-autotune
}

bench() {
  local d model
  offered cuda || return
  for model in mlp cnn; do  # a cache of its own, empty and then full
    local run=(env TUTTI_CACHE="$here/cache-first-step" "$tutti" train "$model" --steps 1 --device "$cuda" --json --quiet --no-eval)
    [ $model = mlp ] && run+=(--data synthetic:784:10) || run+=(--data synthetic:1x28x28:10)
    rm -rf "$here/cache-first-step"
    piece "first-step-cold-$model" 30 "${run[@]}"
    piece "first-step-warm-$model" 30 "${run[@]}"
  done
  piece copy 20 "$here/bin/op_bench" --device "$cuda" --op copy --shape 134217728 --json
  piece adam 20 "$here/bin/op_bench" --device "$cuda" --op adam --shape 67108864 --json
  piece matmul 20 "$here/bin/op_bench" --device "$cuda" --op matmul --shape 4096x4096x4096 --json
  piece conv 20 "$here/bin/op_bench" --device "$cuda" --op conv2d --shape 64,32,14,14,64,3 --json
  for d in 1 2 4; do
    piece "steps-streams-$d" 30 env TUTTI_CUDA_STREAMS=$d "$here/bin/step_bench" --benchmark_filter="/$cuda\$" --benchmark_min_time=0.3 --benchmark_format=json
  done
  for d in $gpus; do
    [ "$d" = "$cuda" ] || piece "steps-${d//:/-}" 30 "$here/bin/step_bench" --benchmark_filter="/$d\$" --benchmark_min_time=0.3 --benchmark_format=json
  done
  against_torch f32 mlp-1024,mlp-784,mlp-gelu,cnn-64,cnn-256
}
bench-tf32() { offered cuda && against_torch tf32 mlp-1024,mlp-784,mlp-gelu,cnn-64,cnn-256; }
bench-bf16() { offered cuda && against_torch bf16 all; }

for part in "${parts[@]}"; do
  part_end=$((SECONDS + 525))
  rm -f "$out/$part".*.log "$out/$part".*.log.err
  : >"$out/pieces/$part.txt"
  : >"$out/pieces/$part.jsonl"
  $part
done

python3 - "$out" <<'PY' || failed=1
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
order = ["correctness", "sanitizer", "bench", "bench-tf32", "bench-bf16"]
pieces, summary = [], (out / "pieces/devices.txt").read_text().splitlines()
for part in order:
    if not (out / f"pieces/{part}.jsonl").exists():
        summary.append(f"{part:<12} not run")
        continue
    summary += (out / f"pieces/{part}.txt").read_text().splitlines()
    pieces += [json.loads(line) for line in (out / f"pieces/{part}.jsonl").read_text().splitlines()]
for p in pieces:  # what a piece printed as JSON comes along
    try:
        p["result"] = json.loads((out / f"{p['part']}.{p['name']}.log").read_text())
    except (OSError, ValueError):
        pass
found = {f"{p['part']}-{p['name']}": p["result"] for p in pieces if "result" in p}

for name, r in found.items():  # figures worth a line
    if name.startswith("bench-first-step"):
        summary.append(f"{name[6:]}: {(r['compile_ms'] + r['step_ms_median']) / 1e3:.3f} s (asked: under {'6' if 'cold' in name else '1'} s)")
    if "-torch-" in name:
        for c in r["results"]:
            ms = c["step_ms_median"]
            summary.append(f"{c['case']}, {c['precision']}: {ms['tutti']['median']:.4f} ms, {c['peer']} {ms['peer']['median']:.4f} ms: "
                           f"{ms['peer']['median'] / ms['tutti']['median']:.2f} times as fast")
    if name.startswith("bench-steps"):
        for b in r["benchmarks"]:
            summary.append(f"{name[6:]}: {b['name']}: {b['real_time']:.4f} {b['time_unit']}")
if "bench-copy" in found and "bench-adam" in found:
    copy, adam = (found[f"bench-{op}"]["gbytes_per_s"] for op in ("copy", "adam"))
    summary.append(f"optimizer: {adam:.0f} GB/s at 28 B per parameter, {100 * adam / copy:.0f} % of the {copy:.0f} GB/s of a copy (asked: 85 %)")
(out / "gpu-check.txt").write_text("\n".join(summary) + "\n")
(out / "gpu-check.json").write_text(json.dumps({"summary": summary, "pieces": pieces}, indent=1) + "\n")
PY
echo "gpu-check: $out/gpu-check.txt and .json"
[ $failed -eq 0 ] || { echo "gpu-check: FAILED: see the lines above"; exit 1; }
if [ ${#skipped[@]} -gt 0 ]; then
  echo "gpu-check: nothing failed, but pieces were skipped:"
  printf '  %s\n' "${skipped[@]}"
  exit 3
fi
echo "gpu-check: all passed"
