/*
 * The files of schema/, embedded at build: migration NNN brings a database from
 * version NNN - 1 to NNN. A migration may be run twice (a crash in its middle),
 * so its statements must bear it.
 */
#ifndef TOC_STORE_MYSQL_SCHEMA_H
#define TOC_STORE_MYSQL_SCHEMA_H

#include <stddef.h>

struct toc_my_schema {
    int version;
    const char *name, *sql;
    size_t len;
};

extern const struct toc_my_schema toc_my_schema[]; /* 1, 2, ... */
extern const size_t toc_my_schema_n;

#endif
