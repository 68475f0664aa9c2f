#!/usr/bin/env bash
# run.sh TREE FOLDER WORD...: proofs and figures on a machine with an NVIDIA GPU, from
# what `make -C bench/gpu` has put into TREE/build/gpu. Files go to FOLDER.
#   find    phxfs_find_dev under permuted CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER
#   memory  the life of GPU memory    check  OPERATIONS random transfers (10000)
#   torch   tensors and files         bench  figures, cuFile and the bus beside them
set -uo pipefail
tree=$(cd "$1" && pwd) folder=$2
shift 2
here=$tree/build/gpu
mkdir -p "$folder"
work=$(mktemp -d "$folder/gpu.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PHXFS_VENDOR=NVIDIA PHX_LIBRARY=$here/libphoenix.so PYTHONPATH=$here
export PHXFS_MODE=${PHXFS_MODE:-host_staging}
bad=0

# The real addresses, the last one first, with a hole: index 1 is nobody's.
tree_of() { # ROOT ADDRESS...
  local root=$1 i=7
  shift
  for address in "$@"; do
    [ $i = 1 ] && i=0
    mkdir -p "$root/class/phxfs-generic/phxfs_dev$i"
    tr A-Z a-z <<<"$address" >"$root/class/phxfs-generic/phxfs_dev$i/pci_bdf"
    i=$((i - 1))
  done
}

find_() {
  local addresses n uuids bad=0
  mapfile -t addresses < <(CUDA_DEVICE_ORDER=PCI_BUS_ID "$here/phx_gpu" list)
  n=${#addresses[@]}
  tree_of "$work/sys" "${addresses[@]}"
  mapfile -t uuids < <(nvidia-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null)
  local all reversed uuid=0
  [ ${#uuids[@]} = 0 ] || uuid=${uuids[-1]}
  all=$(seq -s, 0 $((n - 1))) reversed=$(seq -s, $((n - 1)) -1 0)
  for order in FASTEST_FIRST PCI_BUS_ID; do
    for visible in unset "$all" "$reversed" "$((n - 1))" "0,99,1" "$uuid" "${uuid:0:12}" ""; do
      echo "find: CUDA_DEVICE_ORDER=$order CUDA_VISIBLE_DEVICES=$visible"
      if [ "$visible" = unset ]; then unset CUDA_VISIBLE_DEVICES; else export CUDA_VISIBLE_DEVICES=$visible; fi
      PHXFS_MODE=full PHXFS_SYSFS_ROOT=$work/sys CUDA_DEVICE_ORDER=$order "$here/phx_gpu" find "$work/sys" || bad=1
    done
  done
  unset CUDA_VISIBLE_DEVICES
  return $bad
}

# cuFile asks udev what the file system is.
udev() {
  local number
  number=$(stat -c %d "$work")
  number=b$(((number >> 8) & 0xfff)):$(((number & 0xff) | ((number >> 12) & 0xfff00)))
  [ -e "/run/udev/data/$number" ] && return
  mkdir -p /run/udev/data && printf 'E:ID_FS_TYPE=ext4\nE:ID_FS_USAGE=filesystem\n' >"/run/udev/data/$number"
}

for word in "$@"; do
  echo "== $word"
  case $word in
  find) find_ ;;
  memory) "$here/phx_gpu" memory "$work" ;;
  check) "$here/phx_gpu" check "$work" "${OPERATIONS:-10000}" && PHXFS_IO_ENGINE=sync PHXFS_STAGING_MB=4 "$here/phx_gpu" check "$work" $((${OPERATIONS:-10000} / 10)) ;;
  torch) python3 "$here/torch_fill.py" "$work" ;;
  bench)
    udev 2>/dev/null || echo "no udev data for cuFile (not root?)"
    CUFILE_FORCE_COMPAT_MODE=true "$here/phx_gpu" bench "$work"
    ;;
  *) echo "run.sh: no such word: $word" && false ;;
  esac || { bad=1 && echo "FAIL $word"; }
done
exit $bad
