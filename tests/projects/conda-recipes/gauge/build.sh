#!/usr/bin/env bash
set -euxo pipefail
mkdir -p "$PREFIX/lib" "$PREFIX/include"
$CC $CFLAGS -shared -o "$PREFIX/lib/libgauge.so" gauge.c $LDFLAGS
cp gauge.h "$PREFIX/include"
