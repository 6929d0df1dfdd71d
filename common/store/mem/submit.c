/*
 * Submit: many tasks, each key once in a transaction. Equal keys inside a call:
 * the first goes ahead, then the others are compared with it; one that replaces
 * goes in a transaction of its own, after it.
 */
#include "common/store/mem/store_mem_internal.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct toc_submit *item;
    size_t order;            /* as given */
    bool given;              /* the caller gave the id: it was sent before */
    bool waiting;            /* not decided in an earlier round */
    uint8_t held_content[8]; /* of the key's holder, when it stands */
};

static int
cmp_hash(const struct toc_submit *a, const struct toc_submit *b)
{
    return memcmp(&a->task->key_hash, &b->task->key_hash,
                  sizeof a->task->key_hash);
}

static int
cmp_entry(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = cmp_hash(x->item, y->item);

    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static bool
same_texts(const struct toc_task *a, const struct toc_task *b)
{
    return toc_str_eq(a->biz_type, b->biz_type) &&
           toc_str_eq(a->biz_id, b->biz_id) && toc_str_eq(a->name, b->name);
}

static bool
id_is_zero(const struct toc_task_id *id)
{
    static const struct toc_task_id zero;

    return toc_task_id_cmp(*id, zero) == 0;
}

/* ---- writing
 * ------------------------------------------------------------------- */

static void
own(struct toc_str *text)
{
    *text = toc_mem_text(*text, SIZE_MAX);
}

static void
insert_row(struct toc_mem_txn *txn, const struct toc_task *task)
{
    struct toc_mem_row *row = toc_mem_row_new(TOC_MEM_TASK);

    row->task = *task;
    own(&row->task.error);
    own(&row->task.biz_type);
    own(&row->task.biz_id);
    own(&row->task.name);
    own(&row->task.spec);
    own(&row->task.payload);
    toc_mem_insert(txn, row);
}

static void
put_key(struct toc_mem_txn *txn, const struct toc_submit *item)
{
    struct toc_mem_row *key = toc_mem_row_new(TOC_MEM_KEY);

    key->hash = item->task->key_hash;
    key->at = toc_task_ref_of(item->task);
    memcpy(key->content, item->content, sizeof key->content);
    toc_mem_replace(txn, key);
}

static void
keep_history(struct toc_mem_txn *txn, struct toc_key_hash hash,
             const struct toc_task_ref *at)
{
    struct toc_mem_row *history = toc_mem_row_new(TOC_MEM_HISTORY);

    history->hash = hash;
    history->at = *at;
    toc_mem_insert_ignore(txn, history);
}

/* The task that holds the key ends; parked, it moves to now. */
static struct toc_task_ref
cancel_old(struct toc_mem_txn *txn, const struct toc_task_ref *at,
           int64_t now_ms, int64_t low_ms)
{
    struct toc_mem_row *row = toc_mem_task_change(txn, at), *log;
    struct toc_task_ref ended;

    row->task.version++;
    row->task.state = TOC_STATE_CANCELLED;
    row->task.ended_ms = now_ms;
    log = toc_mem_log_new(&(struct toc_task_ref){at->slice, at->slot_ms, at->id,
                                                 row->task.version},
                          TOC_LOG_KIND_CANCEL);
    if (toc_slot_is_parked(at->slot_ms))
        row = toc_mem_task_move(txn, row, toc_mem_slot_above(now_ms, low_ms));
    ended = toc_task_ref_of(&row->task);
    log->next_slot_ms = ended.slot_ms;
    log->entry.fire = row->task.fire;
    log->entry.at_ms = now_ms;
    toc_mem_log_texts(log, (struct toc_str){NULL, 0},
                      TOC_STR("replaced by a new submit"));
    toc_mem_insert(txn, log);
    return ended;
}

/* ---- deciding
 * ------------------------------------------------------------------ */

static void
create(struct toc_mem_txn *txn, struct toc_submit *item,
       enum toc_submit_result result)
{
    put_key(txn, item);
    insert_row(txn, item->task);
    item->result = result;
}

/* The key changes hands. */
static void
take_over(struct toc_mem_txn *txn, struct entry *e,
          const struct toc_task_ref *ended, enum toc_submit_result result)
{
    keep_history(txn, e->item->task->key_hash, ended);
    create(txn, e->item, result);
}

static void
stands(struct entry *e, const struct toc_mem_row *key,
       const struct toc_task_ref *holder, enum toc_submit_result result)
{
    memcpy(e->held_content, key->content, sizeof e->held_content);
    e->item->result = result;
    e->item->stored = *holder;
}

/* Another task that is not over holds the key. */
static void
meet_live(struct toc_mem_txn *txn, struct entry *e,
          const struct toc_mem_row *key, const struct toc_task *holder,
          int64_t now_ms, int64_t low_ms)
{
    struct toc_task_ref at = toc_task_ref_of(holder);

    if (e->item->on_conflict != TOC_ON_CONFLICT_REPLACE) {
        stands(e, key, &at, TOC_SUBMIT_OTHER);
    } else if (holder->state == TOC_STATE_EXECUTING) {
        stands(e, key, &at, TOC_SUBMIT_TOO_LATE);
    } else {
        struct toc_task_ref ended = cancel_old(txn, &at, now_ms, low_ms);
        take_over(txn, e, &ended, TOC_SUBMIT_REPLACED);
    }
}

static void
meet_holder(struct toc_mem_txn *txn, struct entry *e,
            const struct toc_mem_row *key, int64_t now_ms, int64_t low_ms)
{
    const struct toc_mem_row *row = toc_mem_task_at(txn, &key->at);
    const struct toc_task *holder = row != NULL ? &row->task : NULL;
    struct toc_submit *item = e->item;
    struct toc_task_ref at;
    bool ended;

    if (holder == NULL) { /* its day is gone */
        create(txn, item, TOC_SUBMIT_CREATED);
        return;
    }
    at = toc_task_ref_of(holder);
    ended = toc_state_ended(holder->state);
    if (!same_texts(item->task, holder)) /* two keys have one hash */
        stands(e, key, &at, TOC_SUBMIT_OTHER);
    else if (ended && now_ms - holder->ended_ms >= item->key_window_ms)
        take_over(txn, e, &at, TOC_SUBMIT_CREATED);
    else if (memcmp(key->content, item->content, sizeof key->content) == 0)
        stands(e, key, &at, TOC_SUBMIT_SAME);
    else if (ended && item->on_conflict == TOC_ON_CONFLICT_REPLACE)
        take_over(txn, e, &at, TOC_SUBMIT_REPLACED);
    else if (ended)
        stands(e, key, &at, TOC_SUBMIT_OTHER);
    else
        meet_live(txn, e, key, holder, now_ms, low_ms);
}

/* Stored before, and its key lost since? */
static const struct toc_mem_row *
past_of(const struct toc_store_mem *store, const struct toc_task *task)
{
    const struct toc_mem_map *history = &store->tables[TOC_MEM_HISTORY];
    struct toc_mem_key from = toc_mem_key_hash(task->key_hash);
    struct toc_mem_place place = toc_mem_map_from(history, &from);
    const struct toc_mem_row *row, *last = NULL;

    while ((row = toc_mem_map_next(history, &place)) != NULL &&
           memcmp(&row->hash, &task->key_hash, sizeof row->hash) == 0)
        if (toc_task_id_cmp(row->at.id, task->id) == 0)
            last = row;
    return last;
}

static void
submit_one(struct toc_mem_txn *txn, struct entry *e, int64_t now_ms,
           int64_t low_ms)
{
    struct toc_task *task = e->item->task;
    struct toc_mem_key hash = toc_mem_key_hash(task->key_hash);
    const struct toc_mem_row *key = toc_mem_read(txn, TOC_MEM_KEY, &hash);
    const struct toc_mem_row *past =
        e->given ? past_of(txn->store, task) : NULL;

    toc_mem_lock(txn, TOC_MEM_KEY, &hash, key != NULL);
    if (past != NULL) {
        task->slot_ms = past->at.slot_ms;
        e->item->result = TOC_SUBMIT_CREATED;
    } else if (key == NULL) {
        create(txn, e->item, TOC_SUBMIT_CREATED);
    } else if (toc_task_id_cmp(key->at.id, task->id) != 0) {
        meet_holder(txn, e, key, now_ms, low_ms);
    } else if (toc_mem_task_at(txn, &key->at) != NULL) { /* sent before */
        task->slot_ms = key->at.slot_ms;
        e->item->result = TOC_SUBMIT_CREATED;
    } else {
        create(txn, e->item, TOC_SUBMIT_CREATED);
    }
}

/* ---- rounds
 * --------------------------------------------------------------------- */

static enum toc_status
place(struct toc_mem_txn *txn, struct toc_submit *item, int64_t now_ms,
      int64_t *ret_low, struct toc_error *reterr)
{
    struct toc_task *task = item->task;
    uint16_t shard = toc_slice_shard(task->slice);
    struct toc_mem_key key = toc_mem_key_number(shard);
    int64_t low_ms = toc_mem_share_low(txn, shard);

    if (toc_mem_read(txn, TOC_MEM_SHARD, &key)->shard.state == TOC_SHARD_MOVING)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                             "shard %u is being moved", shard);
    task->slot_ms =
        toc_mem_slot_above(toc_slot_for_due(task->due_ms, now_ms), low_ms);
    if (id_is_zero(&task->id))
        task->id = toc_task_id_make(task->key_hash, task->slot_ms,
                                    (uint32_t)toc_rng_next(&txn->store->rng));
    *ret_low = low_ms;
    return TOC_OK;
}

/* The first waiting entry of each key. */
static enum toc_status
submit_round(struct toc_store_mem *store, struct entry **round, size_t n,
             int64_t now_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};

    for (size_t i = 0; i < n; i++) {
        int64_t low_ms = 0;
        enum toc_status st =
            place(&txn, round[i]->item, now_ms, &low_ms, reterr);
        if (st != TOC_OK)
            return st;
        submit_one(&txn, round[i], now_ms, low_ms);
    }
    return toc_mem_commit(&txn, now_ms, reterr);
}

/* Compares an entry with the one of the same key that went ahead; false when
 * it must go in a round of its own. */
static bool
decide_after(struct entry *e, const struct entry *first)
{
    const struct toc_submit *ahead = first->item;
    bool held = ahead->result == TOC_SUBMIT_OTHER ||
                ahead->result == TOC_SUBMIT_TOO_LATE;
    bool made = ahead->result == TOC_SUBMIT_CREATED ||
                ahead->result == TOC_SUBMIT_REPLACED;
    const uint8_t *content = held ? first->held_content : ahead->content;
    bool same = memcmp(content, e->item->content, 8) == 0 &&
                same_texts(e->item->task, ahead->task);

    if (!same && e->item->on_conflict == TOC_ON_CONFLICT_REPLACE)
        return false;
    e->item->result = same ? TOC_SUBMIT_SAME : TOC_SUBMIT_OTHER;
    e->item->stored = made ? toc_task_ref_of(ahead->task) : ahead->stored;
    return true;
}

static size_t
pick_round(struct entry *all, size_t n, struct entry **round)
{
    size_t picked = 0;

    for (size_t i = 0; i < n; i++)
        if (all[i].waiting &&
            (picked == 0 || cmp_hash(round[picked - 1]->item, all[i].item)))
            round[picked++] = &all[i];
    return picked;
}

static void
settle_round(struct entry *all, size_t n, struct entry **round)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (!all[i].waiting)
            continue;
        while (cmp_hash(round[at]->item, all[i].item) != 0)
            at++;
        if (&all[i] == round[at] || decide_after(&all[i], round[at]))
            all[i].waiting = false;
    }
}

enum toc_status
toc_mem_submit(void *self, struct toc_submit **items, size_t n, int64_t now_ms,
               struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_AUTO_FREE struct entry *all = TOC_NEW_ARRAY(struct entry, n);
    TOC_AUTO_FREE struct entry **round = TOC_NEW_ARRAY(struct entry *, n);
    size_t picked;

    for (size_t i = 0; i < n; i++)
        all[i] = (struct entry){.item = items[i],
                                .order = i,
                                .given = !id_is_zero(&items[i]->task->id),
                                .waiting = true};
    qsort(all, n, sizeof *all, cmp_entry);
    while ((picked = pick_round(all, n, round)) > 0) {
        enum toc_status st = submit_round(store, round, picked, now_ms, reterr);
        if (st != TOC_OK)
            return st;
        settle_round(all, n, round);
    }
    return TOC_OK;
}
