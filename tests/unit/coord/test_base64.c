/*
 * Goal: base64 as RFC 4648 has it, both ways; nothing else is taken.
 * Method: the RFC's examples, round trips, and every single-character change.
 */
#include "common/base/rng.h"
#include "common/coord/etcd/base64.h"
#include "tests/support/toc_check.h"

#include <string.h>

static const struct {
    const char *plain, *text;
} examples[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xfe", "+//+"},
};

START_TEST(examples_both_ways)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct toc_buf out = {0};
        char plain[64];
        size_t len = 99;
        toc_base64_add(&out, toc_str_of(examples[i].plain));
        TOC_ASSERT_STR(toc_buf_view(&out), examples[i].text);
        ck_assert(toc_base64_decode(toc_str_of(examples[i].text), plain, &len));
        TOC_ASSERT_STR(((struct toc_str){plain, len}), examples[i].plain);
        ck_assert_uint_le(len, toc_base64_room(out.len));
        toc_buf_done(&out);
    }
}
END_TEST

START_TEST(any_bytes_come_back)
{
    for (size_t len = 0; len < 300; len++) {
        char bytes[300], back[303];
        size_t back_len;
        struct toc_buf text = {0};
        toc_rng_bytes(bytes, len);
        toc_base64_add(&text, (struct toc_str){bytes, len});
        ck_assert_uint_eq(text.len, (len + 2) / 3 * 4);
        ck_assert(toc_base64_decode(toc_buf_view(&text), back, &back_len));
        ck_assert_uint_eq(back_len, len);
        ck_assert_int_eq(memcmp(bytes, back, len), 0);
        toc_buf_done(&text);
    }
}
END_TEST

START_TEST(what_is_not_base64_is_refused)
{
    const char *const bad[] = {
        "A",    "AB",   "ABC",   "ABCDE",   "====",       "A===",   "=AAA",
        "AA=A", "Zg=a", "Zh==",  "Zm9=",    "Zm 9",       "Zm9v\n", "Zg==Zg==",
        "Zm9-", "Zm9_", "Zm8==", "Zm9vZg=", "aa\xc3\xa4",
    };
    char out[64];
    size_t len = 77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!toc_base64_decode(toc_str_of(bad[i]), out, &len),
                      "\"%s\" was taken", bad[i]);
    ck_assert(!toc_base64_decode((struct toc_str){"AA\0A", 4}, out, &len));
    ck_assert_uint_eq(len, 77);
}
END_TEST

/* Decoding is unambiguous: a text that decodes encodes to itself again. */
START_TEST(one_text_for_one_content)
{
    char text[] = "Zm9vYmE=", out[16];
    size_t len, taken = 0;
    for (size_t at = 0; at < strlen("Zm9vYmE="); at++)
        for (int c = 0; c < 256; c++) {
            char before = text[at];
            text[at] = (char)c;
            struct toc_str changed = {text, 8};
            if (toc_base64_decode(changed, out, &len)) {
                struct toc_buf again = {0};
                toc_base64_add(&again, (struct toc_str){out, len});
                ck_assert(toc_str_eq(toc_buf_view(&again), changed));
                toc_buf_done(&again);
                taken++;
            }
            text[at] = before;
        }
    ck_assert_uint_gt(taken, 64 * 6);
}
END_TEST

TOC_CHECK_MAIN("coord base64", examples_both_ways, any_bytes_come_back,
               what_is_not_base64_is_refused, one_text_for_one_content)
