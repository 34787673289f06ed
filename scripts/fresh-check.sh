#!/usr/bin/env bash
# Whether the README's two commands are all that a fresh machine needs: makes a minimal Debian 12 in a temporary folder,
# clones this repository's HEAD into it, and runs each command there, with nothing installed by hand. Times and results go
# to build/fresh-check.txt. Takes root, debootstrap and a while.
#
#   scripts/fresh-check.sh                                  ./weft mnist --epochs 1 and ./weft test
#   scripts/fresh-check.sh './weft build' './weft test'     other commands
#
# WEFT_DATA is seen inside, read only, where it is set. DEBIAN_MIRROR names another mirror than the one apt uses here.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=bookworm
((EUID == 0)) || { echo "fresh-check: chroot takes root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "fresh-check: install debootstrap first" >&2; exit 2; }
(($#)) || set -- './weft mnist --epochs 1' './weft test'

# Where apt gets this suite from, and through which proxy.
host_is_suite=$(grep -c "VERSION_CODENAME=$suite" /etc/os-release || true)
mirror=${DEBIAN_MIRROR:-}
if [[ -z $mirror ]] && ((host_is_suite)); then
  # shellcheck disable=SC2016  # apt-get fills this in
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Created-By: Packages' | sed -n 1p)
fi
mirror=${mirror:-http://deb.debian.org/debian}
eval "$(apt-config shell proxy Acquire::http::Proxy)"
if [[ -n ${proxy:-} ]]; then export http_proxy=$proxy; fi

fresh=$(mktemp -d)
chmod 755 "$fresh"  # apt works as a user of its own
# shellcheck disable=SC2317  # the trap calls it
cleanup() {
  for folder in data dev proc; do umount -R "$fresh/$folder" 2>/dev/null || true; done
  if findmnt -rno TARGET | grep -qF "$fresh/"; then
    echo "fresh-check: something is still mounted below $fresh; not removed" >&2
  else
    rm -rf --one-file-system "$fresh"
  fi
}
trap cleanup EXIT

echo "making a minimal Debian ($suite) from $mirror"
debootstrap --variant=minbase "$suite" "$fresh" "$mirror" >"$fresh.log" 2>&1 || { tail -n 20 "$fresh.log"; exit 1; }
rm "$fresh.log"

# The way to the network is the host's: sources, proxies, certificates, names.
copy() { if [[ -e $1 ]]; then mkdir -p "$fresh$(dirname "$1")" && cp -rL "$1" "$fresh$1"; fi; }
if ((host_is_suite)); then
  rm -f "$fresh/etc/apt/sources.list"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian*; do copy "$file"; done
fi
for file in /etc/apt/apt.conf.d/*; do
  if grep -qsi '^ *Acquire::[^ ]*\(proxy\|check\|verify\|retries\|ca\)' "$file"; then copy "$file"; fi
done
for file in /etc/apt/auth.conf /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt \
            /usr/local/share/ca-certificates/*.crt; do copy "$file"; done

mount -t proc proc "$fresh/proc"
mount --rbind /dev "$fresh/dev" && mount --make-rslave "$fresh/dev"
environment=(HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy; do [[ -z ${!name:-} ]] || environment+=("$name=${!name}"); done
if [[ -n ${WEFT_DATA:-} ]]; then
  mkdir "$fresh/data"
  mount --bind -o ro "$WEFT_DATA" "$fresh/data"
  environment+=(WEFT_DATA=/data)
fi
git clone -q --no-hardlinks . "$fresh/srv/weft"

mkdir -p build
result=$PWD/build/fresh-check.txt
say() { echo "$*" | tee -a "$result"; }
: >"$result"
say "$(date -u +%F) commit $(git rev-parse --short HEAD), Debian $(cat "$fresh/etc/debian_version") minbase, $(nproc) cores," \
    "data: $([[ -n ${WEFT_DATA:-} ]] && echo "WEFT_DATA" || echo "none given")"
failed=0
for command in "$@"; do
  start=$SECONDS status=0
  env -i "${environment[@]}" chroot "$fresh" bash -c "cd /srv/weft && $command" 2>&1 | tee "$fresh/output.log" || status=$?
  ((status == 0)) || failed=1
  say "$command: exit code $status, $((SECONDS - start)) s"
  tail -n 12 "$fresh/output.log" | sed 's/.*\r//; s/^/    /' >>"$result"
done
echo "recorded in $result"
exit $failed
