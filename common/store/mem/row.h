/*
 * Rows of the memory store and their keys.
 *
 * A row that is in a table never changes: a transaction makes a copy, and its
 * commit puts that in place of the old one. So what was read stays as it was,
 * and a row can be in a table and in the write set of a held transaction at
 * once. Texts are shared by copies and counted.
 *
 * Keys, as bytes that compare as MySQL's primary keys do:
 *   task, straggler  slice, slot, id      shard  number
 *   key              hash                 node   number
 *   history          hash, slot, id       dead   id
 *   log              id, log id (in MySQL: slice, slot, id, log id; a log id
 *                    comes once in a task's life, so this says the same)
 */
#ifndef TOC_STORE_MEM_ROW_H
#define TOC_STORE_MEM_ROW_H

#include "common/base/arena.h"
#include "common/store/mem/map.h"
#include "common/store/store.h"

enum toc_mem_table {
    TOC_MEM_TASK,
    TOC_MEM_KEY,
    TOC_MEM_HISTORY,
    TOC_MEM_LOG,
    TOC_MEM_DEAD,
    TOC_MEM_STRAGGLER,
    TOC_MEM_SHARD,
    TOC_MEM_NODE,
};
#define TOC_MEM_TABLES 8

struct toc_mem_row {
    enum toc_mem_table table;
    bool removed; /* in a write set: the row goes */
    union {
        struct {
            struct toc_task task; /* task, dead */
            int64_t dead_ms;      /* dead */
            struct toc_str reason;
        };
        struct {
            struct toc_key_hash hash; /* key, history */
            /* key, history, straggler: where the task is; log: where it was,
             * version: the log id */
            struct toc_task_ref at;
            uint8_t content[8]; /* key */
            int64_t next_slot_ms;
            struct toc_log_entry entry;
        };
        struct toc_shard_row shard;
        struct toc_node_row node;
    };
};

/* Cleared. */
struct toc_mem_row *toc_mem_row_new(enum toc_mem_table table);
struct toc_mem_row *toc_mem_row_copy(const struct toc_mem_row *row);
void toc_mem_row_free(struct toc_mem_row *row);

/* A counted copy of the text, cut to max bytes (not in a character). */
struct toc_str toc_mem_text(struct toc_str s, size_t max);
/* In place of the text that was there. */
void toc_mem_text_set(struct toc_str *at, struct toc_str s, size_t max);

/* The row as a task for the caller; hint: without a long payload. */
void toc_mem_task_out(const struct toc_mem_row *row, bool hint,
                      struct toc_arena *arena, struct toc_task *ret_task);
/* The same, borrowed from the row. */
struct toc_task toc_mem_task_hint(const struct toc_mem_row *row);

struct toc_mem_key toc_mem_key_of(const struct toc_mem_row *row);
struct toc_mem_key toc_mem_key_place(uint16_t slice, int64_t slot_ms,
                                     struct toc_task_id id);
struct toc_mem_key toc_mem_key_ref(const struct toc_task_ref *ref);
struct toc_mem_key toc_mem_key_hash(struct toc_key_hash hash);
struct toc_mem_key toc_mem_key_history(struct toc_key_hash hash,
                                       int64_t slot_ms, struct toc_task_id id);
struct toc_mem_key toc_mem_key_id(struct toc_task_id id);
struct toc_mem_key toc_mem_key_log(struct toc_task_id id, uint64_t log_id);
struct toc_mem_key toc_mem_key_number(uint32_t number); /* shard, node */

#endif
