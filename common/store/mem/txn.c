/*
 * Transactions: a write set beside the tables, locks, commit. Locks matter only
 * against held transactions: all others are over when their operation is.
 */
#include "common/store/mem/store_mem_internal.h"

static void
free_writes(struct toc_mem_map *writes)
{
    struct toc_mem_place place = {0, 0};
    struct toc_mem_row *row;

    while ((row = toc_mem_map_next(writes, &place)) != NULL)
        toc_mem_row_free(row);
    toc_mem_map_done(writes);
}

void
toc_mem_txn_done(struct toc_mem_txn *txn)
{
    for (size_t i = 0; i < TOC_MEM_TABLES; i++)
        free_writes(&txn->writes[i]);
    toc_free(txn->locks);
    txn->locks = NULL;
    txn->n_locks = txn->cap_locks = 0;
    txn->duplicate = false;
}

/* ---- reading and writing
 * ------------------------------------------------------- */

const struct toc_mem_row *
toc_mem_read(const struct toc_mem_txn *txn, enum toc_mem_table table,
             const struct toc_mem_key *key)
{
    const struct toc_mem_row *row = toc_mem_map_get(&txn->writes[table], key);

    if (row != NULL)
        return row->removed ? NULL : row;
    return toc_mem_map_get(&txn->store->tables[table], key);
}

void
toc_mem_lock(struct toc_mem_txn *txn, enum toc_mem_table table,
             const struct toc_mem_key *key, bool shared)
{
    if (txn->n_locks == txn->cap_locks) {
        txn->cap_locks = txn->cap_locks * 2 + 16;
        txn->locks =
            toc_realloc(txn->locks, txn->cap_locks * sizeof *txn->locks);
    }
    txn->locks[txn->n_locks++] = (struct toc_mem_lock){table, *key, shared};
}

/* Into the write set, in place of what was written there before. */
static void
write_at(struct toc_mem_txn *txn, const struct toc_mem_key *key,
         struct toc_mem_row *row)
{
    toc_mem_row_free(toc_mem_map_put(&txn->writes[row->table], key, row));
    toc_mem_lock(txn, row->table, key, false);
}

struct toc_mem_row *
toc_mem_change(struct toc_mem_txn *txn, enum toc_mem_table table,
               const struct toc_mem_key *key)
{
    struct toc_mem_row *row = toc_mem_map_get(&txn->writes[table], key);

    if (row != NULL)
        return row->removed ? NULL : row;
    row = toc_mem_map_get(&txn->store->tables[table], key);
    if (row == NULL)
        return NULL;
    row = toc_mem_row_copy(row);
    write_at(txn, key, row);
    return row;
}

void
toc_mem_replace(struct toc_mem_txn *txn, struct toc_mem_row *row)
{
    struct toc_mem_key key = toc_mem_key_of(row);

    write_at(txn, &key, row);
}

void
toc_mem_insert(struct toc_mem_txn *txn, struct toc_mem_row *row)
{
    struct toc_mem_key key = toc_mem_key_of(row);

    if (toc_mem_read(txn, row->table, &key) != NULL)
        txn->duplicate = true;
    write_at(txn, &key, row);
}

void
toc_mem_insert_ignore(struct toc_mem_txn *txn, struct toc_mem_row *row)
{
    struct toc_mem_key key = toc_mem_key_of(row);

    if (toc_mem_read(txn, row->table, &key) == NULL) {
        write_at(txn, &key, row);
        return;
    }
    toc_mem_lock(txn, row->table, &key, true);
    toc_mem_row_free(row);
}

void
toc_mem_remove(struct toc_mem_txn *txn, enum toc_mem_table table,
               const struct toc_mem_key *key)
{
    const struct toc_mem_row *row = toc_mem_read(txn, table, key);
    struct toc_mem_row *copy;

    if (row == NULL)
        return;
    copy = toc_mem_row_copy(row);
    copy->removed = true;
    write_at(txn, key, copy);
}

/* ---- commit
 * --------------------------------------------------------------------- */

static bool
locks_meet(const struct toc_mem_txn *a, const struct toc_mem_txn *b)
{
    for (size_t i = 0; i < a->n_locks; i++)
        for (size_t j = 0; j < b->n_locks; j++) {
            const struct toc_mem_lock *x = &a->locks[i], *y = &b->locks[j];
            if (x->table == y->table && !(x->shared && y->shared) &&
                toc_mem_key_cmp(&x->key, &y->key) == 0)
                return true;
        }
    return false;
}

static bool
must_wait(const struct toc_mem_txn *txn)
{
    const struct toc_link *head = &txn->store->held;

    for (struct toc_link *at = head->next; at != head; at = at->next)
        if (locks_meet(txn,
                       toc_container_of(at, const struct toc_mem_txn, link)))
            return true;
    return false;
}

/* Tables by day take no row beyond the last one. */
static bool
days_are_there(const struct toc_mem_txn *txn)
{
    static const enum toc_mem_table by_day[] = {TOC_MEM_TASK, TOC_MEM_HISTORY,
                                                TOC_MEM_LOG};

    for (size_t i = 0; i < 3; i++) {
        struct toc_mem_place place = {0, 0};
        const struct toc_mem_row *row;
        while ((row = toc_mem_map_next(&txn->writes[by_day[i]], &place)) !=
               NULL) {
            int64_t slot_ms =
                by_day[i] == TOC_MEM_TASK ? row->task.slot_ms : row->at.slot_ms;
            if (!row->removed && !toc_mem_has_day(txn->store, slot_ms))
                return false;
        }
    }
    return true;
}

static void
put_row(struct toc_store_mem *store, struct toc_mem_row *row)
{
    struct toc_mem_key key = toc_mem_key_of(row);
    struct toc_mem_row *old =
        toc_mem_map_put(&store->tables[row->table], &key, row);

    if (row->table == TOC_MEM_TASK) {
        key = toc_mem_key_id(row->task.id);
        (void)toc_mem_map_put(&store->by_id, &key, row);
    }
    toc_mem_row_free(old);
}

static void
take_row(struct toc_store_mem *store, const struct toc_mem_row *removed)
{
    struct toc_mem_key key = toc_mem_key_of(removed);
    struct toc_mem_row *old =
        toc_mem_map_take(&store->tables[removed->table], &key);

    if (old != NULL && old->table == TOC_MEM_TASK) {
        key = toc_mem_key_id(old->task.id);
        (void)toc_mem_map_take(&store->by_id, &key);
    }
    toc_mem_row_free(old);
}

/* First what goes, then what comes: a row that moves is both. */
static void
apply(struct toc_mem_txn *txn)
{
    for (size_t i = 0; i < TOC_MEM_TABLES; i++) {
        struct toc_mem_map *writes = &txn->writes[i];
        struct toc_mem_place place = {0, 0};
        struct toc_mem_row *row;
        while ((row = toc_mem_map_next(writes, &place)) != NULL)
            if (row->removed)
                take_row(txn->store, row);
        place = (struct toc_mem_place){0, 0};
        while ((row = toc_mem_map_next(writes, &place)) != NULL) {
            if (row->removed)
                toc_mem_row_free(row);
            else
                put_row(txn->store, row);
        }
        toc_mem_map_done(writes);
    }
}

static bool
writes_any(const struct toc_mem_txn *txn)
{
    for (size_t i = 0; i < TOC_MEM_TABLES; i++)
        if (txn->writes[i].len > 0)
            return true;
    return false;
}

/* ---- holding
 * -------------------------------------------------------------------- */

static enum toc_status
hold(struct toc_mem_txn *txn, struct toc_error *reterr)
{
    struct toc_store_mem *store = txn->store;
    struct toc_mem_txn *held = TOC_NEW(struct toc_mem_txn);

    *held = *txn;
    *txn = (struct toc_mem_txn){.store = store};
    held->number = ++store->last_held;
    toc_list_push(&store->held, &held->link);
    store->n_held++;
    store->hold_next = false;
    if (store->answer == TOC_STORE_MEM_FROZEN)
        return TOC_OK;
    return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                         "the connection was lost at COMMIT");
}

static void
let_go(struct toc_mem_txn *held, bool commit)
{
    struct toc_store_mem *store = held->store;

    toc_list_remove(&held->link);
    store->n_held--;
    if (commit)
        apply(held);
    toc_mem_txn_done(held);
    toc_free(held);
}

void
toc_mem_drop_held(struct toc_store_mem *store)
{
    while (!toc_list_empty(&store->held))
        let_go(toc_container_of(store->held.next, struct toc_mem_txn, link),
               false);
}

bool
toc_store_mem_release(struct toc_store_mem *self, uint64_t number, bool commit)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    struct toc_link *head = &store->held;

    for (struct toc_link *at = head->next; at != head; at = at->next) {
        struct toc_mem_txn *held =
            toc_container_of(at, struct toc_mem_txn, link);
        if (held->number != number)
            continue;
        let_go(held, commit);
        return true;
    }
    return false;
}

enum toc_status
toc_mem_commit(struct toc_mem_txn *txn, int64_t now_ms,
               struct toc_error *reterr)
{
    if (must_wait(txn))
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                             "a held transaction has one of the locks");
    if (txn->duplicate)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                             "a row to be inserted is there already");
    if (!days_are_there(txn)) {
        enum toc_status st = toc_mem_make_days(txn->store, now_ms, reterr);
        if (st != TOC_OK)
            return st;
        if (!days_are_there(txn))
            return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                                 "there is no day for a row");
    }
    if (!writes_any(txn))
        return TOC_OK;
    if (txn->store->hold_next)
        return hold(txn, reterr);
    apply(txn);
    return TOC_OK;
}
