#!/usr/bin/env bash
set -euxo pipefail
mkdir -p "$PREFIX/lib" "$PREFIX/include" "$PREFIX/bin"
$CC $CFLAGS -shared -o "$PREFIX/lib/libchecksum.so" checksum.c $LDFLAGS -lz
$CC $CFLAGS -o "$PREFIX/bin/checksum" main.c $LDFLAGS -lchecksum -lz
cp checksum.h "$PREFIX/include"
