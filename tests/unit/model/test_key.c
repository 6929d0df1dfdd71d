/*
 * Goal: keys hash as they are stored for ever, and ids survive being written
 * and read in every spelling Crockford allows, and in no other.
 * Method: values computed by another implementation, round trips of random
 * ids, tables of bad texts.
 */
#include "common/model/key.h"

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/rng.h"
#include "common/model/slot.h"

#include "tests/support/toc_check.h"

#include <string.h>

static void
check_hex(const uint8_t *bytes, const char *want)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};

    toc_buf_hex(&hex, bytes, 16);
    ck_assert_str_eq(hex.data, want);
}

START_TEST(hashes_are_as_stored)
{
    struct toc_key_hash hash =
        toc_key_hash_of(TOC_STR("order"), TOC_STR("42"), TOC_STR("pay"));
    struct toc_key_hash biz = toc_key_hash_biz(TOC_STR("order"), TOC_STR("42"));

    check_hex(hash.b, "aa5497ca378a90dd8e4dd213f6d24e17");
    check_hex(biz.b, "aa5497ca378a00000000000000000000");
    ck_assert_uint_eq(toc_key_shard(hash), 170);
}
END_TEST

START_TEST(one_business_id_lies_together)
{
    struct toc_key_hash a =
        toc_key_hash_of(TOC_STR("order"), TOC_STR("42"), TOC_STR("pay"));
    struct toc_key_hash b =
        toc_key_hash_of(TOC_STR("order"), TOC_STR("42"), TOC_STR(""));
    struct toc_key_hash other =
        toc_key_hash_of(TOC_STR("order4"), TOC_STR("2"), TOC_STR("pay"));

    ck_assert_mem_eq(a.b, b.b, 6);
    ck_assert(memcmp(a.b, b.b, 16) != 0);
    ck_assert(memcmp(a.b, other.b, 6) != 0);
}
END_TEST

START_TEST(an_id_is_made_of_its_parts)
{
    struct toc_key_hash hash = {
        {0xf0, 1, 2, 3, 4, 0xff, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
    struct toc_task_id id =
        toc_task_id_make(hash, INT64_C(1796119200123), 0xdeadbeef);

    check_hex(id.b, "f001020304ff01a2310c017bdeadbeef");
    ck_assert_int_eq(toc_task_id_first_slot(id), INT64_C(1796119200123));
}
END_TEST

START_TEST(a_parked_slot_shows_its_due_time)
{
    static const int64_t kinds[] = {TOC_PARK_FAR_MS, TOC_PARK_PAUSED_MS,
                                    TOC_PARK_HELD_MS};
    static const int64_t dues[] = {0, 1, INT64_C(1796119200123),
                                   TOC_DUE_MS_MAX};
    struct toc_key_hash hash = {{0}};

    for (size_t k = 0; k < 3; k++)
        for (size_t d = 0; d < 4; d++)
            ck_assert_int_eq(toc_task_id_first_slot(toc_task_id_make(
                                 hash, toc_slot_parked(dues[d], kinds[k]), 0)),
                             dues[d]);
}
END_TEST

START_TEST(text_of_known_ids)
{
    struct toc_task_id id = {{0}};
    char text[TOC_TASK_ID_TEXT_MAX];

    ck_assert_str_eq(toc_task_id_format(id, text),
                     "00000000000000000000000000");
    memset(id.b, 0xff, sizeof id.b);
    ck_assert_str_eq(toc_task_id_format(id, text),
                     "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    for (size_t i = 0; i < sizeof id.b; i++)
        id.b[i] = (uint8_t)(0x11 * i);
    ck_assert_str_eq(toc_task_id_format(id, text),
                     "0024H36H2NCSVRH6DAQF6DVVQZ");
}
END_TEST

START_TEST(ids_round_trip)
{
    struct toc_rng rng;

    toc_rng_seed(&rng, 11);
    for (int i = 0; i < 5000; i++) {
        struct toc_task_id id, back, lower;
        char text[TOC_TASK_ID_TEXT_MAX];
        uint64_t halves[2] = {toc_rng_next(&rng), toc_rng_next(&rng)};
        memcpy(id.b, halves, sizeof id.b);
        toc_task_id_format(id, text);
        ck_assert_uint_eq(strlen(text), 26);
        ck_assert(toc_task_id_parse(toc_str_of(text), &back));
        ck_assert_int_eq(toc_task_id_cmp(id, back), 0);
        for (char *at = text; *at != '\0'; at++)
            if (*at >= 'A')
                *at = (char)(*at - 'A' + 'a');
        ck_assert(toc_task_id_parse(toc_str_of(text), &lower));
        ck_assert_int_eq(toc_task_id_cmp(id, lower), 0);
    }
}
END_TEST

START_TEST(text_order_is_id_order)
{
    struct toc_rng rng;

    toc_rng_seed(&rng, 12);
    for (int i = 0; i < 2000; i++) {
        struct toc_task_id a, b;
        char a_text[TOC_TASK_ID_TEXT_MAX], b_text[TOC_TASK_ID_TEXT_MAX];
        uint64_t halves[2] = {toc_rng_next(&rng), toc_rng_next(&rng)};
        memcpy(a.b, halves, sizeof a.b);
        b = a;
        b.b[toc_rng_below(&rng, 16)] ^= (uint8_t)(1 + toc_rng_below(&rng, 255));
        ck_assert((toc_task_id_cmp(a, b) < 0) ==
                  (strcmp(toc_task_id_format(a, a_text),
                          toc_task_id_format(b, b_text)) < 0));
    }
}
END_TEST

START_TEST(misread_letters)
{
    struct toc_task_id want, got;

    ck_assert(toc_task_id_parse(TOC_STR("01100000000000000000000110"), &want));
    ck_assert(toc_task_id_parse(TOC_STR("oIlO0oOOOOOOooooooooOooiLo"), &got));
    ck_assert_int_eq(toc_task_id_cmp(want, got), 0);
}
END_TEST

START_TEST(bad_texts)
{
    static const char *const bad[] = {
        "",
        "0000000000000000000000000",   /* 25 */
        "000000000000000000000000000", /* 27 */
        "80000000000000000000000000",  /* over 128 bits */
        "Z0000000000000000000000000",
        "0000000000000000000000000U",
        "u0000000000000000000000000",
        "0000000000000-000000000000",
        " 0000000000000000000000000",
        "0000000000000000000000000\n",
        "\xc3\xbcgg0000000000000000000000", /* 26 bytes */
        "/:@[`{00000000000000000000",
    };
    struct toc_task_id id = {{1, 2, 3}};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!toc_task_id_parse(toc_str_of(bad[i]), &id), "\"%s\"",
                      bad[i]);
    ck_assert(!toc_task_id_parse((struct toc_str){NULL, 0}, &id));
    ck_assert(!toc_task_id_parse(TOC_STR("0000000000000\0000000000000"), &id));
    ck_assert_mem_eq(id.b, "\x01\x02\x03\x00", 4);
}
END_TEST

START_TEST(fire_ids)
{
    struct toc_task_id id;
    char text[TOC_FIRE_ID_TEXT_MAX];

    memset(id.b, 0xff, sizeof id.b);
    ck_assert_str_eq(toc_fire_id_format(id, UINT32_MAX, text),
                     "7ZZZZZZZZZZZZZZZZZZZZZZZZZ-4294967295");
    ck_assert_str_eq(toc_fire_id_format(id, 1, text),
                     "7ZZZZZZZZZZZZZZZZZZZZZZZZZ-1");
}
END_TEST

TOC_CHECK_MAIN("key", hashes_are_as_stored, one_business_id_lies_together,
               an_id_is_made_of_its_parts, a_parked_slot_shows_its_due_time,
               text_of_known_ids, ids_round_trip, text_order_is_id_order,
               misread_letters, bad_texts, fire_ids)
