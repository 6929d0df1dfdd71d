/*
 * Names of a task: its key (biz_type, biz_id, name), the hash of the key that
 * the store is ordered by, and the task id made from both.
 *
 * key_hash (16 bytes) = first 6 bytes of SHA-256(biz_type, biz_id) followed by
 * the first 10 bytes of SHA-256(biz_type, biz_id, name), over length-prefixed
 * fields: everything of one business id lies together. The first byte is the
 * shard, for ever. A hash match is believed only after comparing the texts.
 *
 * task_id (16 bytes) = key_hash[0..5] | low 48 bits of the first slot, big
 * endian | 4 random bytes. Shown as 26 characters of Crockford's base32 (most
 * significant digit first, upper case, no I L O U); reading accepts lower case,
 * and I, L for 1 and O for 0, as Crockford says.
 *
 * Threads: any. Nothing here allocates.
 */
#ifndef TOC_MODEL_KEY_H
#define TOC_MODEL_KEY_H

#include "common/base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define TOC_SHARDS 256

struct toc_key_hash {
    uint8_t b[16];
};

struct toc_task_id {
    uint8_t b[16];
};

#define TOC_TASK_ID_TEXT_MAX 27 /* 26 characters and the NUL */

struct toc_key_hash toc_key_hash_of(struct toc_str biz_type,
                                    struct toc_str biz_id, struct toc_str name);
/* The hash with only its first 6 bytes set: where a business id begins. */
struct toc_key_hash toc_key_hash_biz(struct toc_str biz_type,
                                     struct toc_str biz_id);
uint16_t toc_key_shard(struct toc_key_hash hash);

struct toc_task_id toc_task_id_make(struct toc_key_hash hash, int64_t slot_ms,
                                    uint32_t random);
/* The low 48 bits of the slot at which the task was first stored: for a slot
 * that is not parked, the slot itself. */
int64_t toc_task_id_first_slot(struct toc_task_id id);
char *toc_task_id_format(struct toc_task_id id, char dst[TOC_TASK_ID_TEXT_MAX]);
bool toc_task_id_parse(struct toc_str text, struct toc_task_id *ret_id);
int toc_task_id_cmp(struct toc_task_id a, struct toc_task_id b);

/* "<task id>-<fire>": names one fire for the business; every attempt of the
 * fire has the same. */
#define TOC_FIRE_ID_TEXT_MAX 40
char *toc_fire_id_format(struct toc_task_id id, uint32_t fire,
                         char dst[TOC_FIRE_ID_TEXT_MAX]);

#endif
