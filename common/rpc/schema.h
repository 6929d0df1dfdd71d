/*
 * Our own .proto files, as server reflection shows them: files by name, by what
 * they define, and by what they import.
 *
 * Ownership: what is handed out lives as long as the schema. Threads: any, once
 * made.
 */
#ifndef TOC_RPC_SCHEMA_H
#define TOC_RPC_SCHEMA_H

#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct rpc_schema;

struct rpc_schema *rpc_schema_new(void);
void rpc_schema_free(struct rpc_schema *schema);

#define RPC_SCHEMA_NONE ((size_t)-1)
size_t rpc_schema_files(const struct rpc_schema *schema);
/* The number of a file, or RPC_SCHEMA_NONE. */
size_t rpc_schema_by_name(const struct rpc_schema *schema, struct toc_str name);
/* Of the file that defines this message, field, enum, enum value, service or
 * method, by full name. */
size_t rpc_schema_by_symbol(const struct rpc_schema *schema,
                            struct toc_str symbol);
/* Is it a message type here? */
bool rpc_schema_is_message(const struct rpc_schema *schema,
                           struct toc_str symbol);
/* A serialized google.protobuf.FileDescriptorProto. */
struct toc_str rpc_schema_bytes(const struct rpc_schema *schema, size_t file);
/* Sets taken[] for the file and, transitively, what it imports; the file first,
 * appends their numbers to order, which has room for all files. */
void rpc_schema_take(const struct rpc_schema *schema, size_t file, bool *taken,
                     size_t *order, size_t *n);

#endif
