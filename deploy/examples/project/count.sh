#!/bin/sh
# Counts the words of each file that is named.
for file in "$@"; do
    printf '%s %s\n' "$(./count <"$file")" "$file"
done
