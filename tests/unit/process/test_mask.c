/* Masks of known secrets: forms, pieces, overlaps (RULES L-40). */
#include "common/process/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *masked(const char *const *secrets, size_t n, const char *text, size_t piece)
{
    struct mask *mask = mask_new(secrets, n);
    struct mask_stream stream;
    struct buf out = BUF_INIT;
    size_t len = strlen(text);
    assert_non_null(mask);
    mask_stream_init(&stream, mask);
    for (size_t at = 0; at < len; at += piece) {
        mask_stream_feed(&stream, text + at, len - at < piece ? len - at : piece, &out);
    }
    mask_stream_end(&stream, &out);
    mask_stream_done(&stream);
    mask_free(mask);
    return buf_take(&out, NULL);
}

static void expect(const char *secret, const char *text, const char *wanted)
{
    const char *const secrets[] = {secret};
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        char *got = masked(secrets, 1, text, piece);
        assert_string_equal(got, wanted);
        free(got);
    }
}

static void test_L_40_as_it_is_in_any_pieces(void **state)
{
    (void)state;
    expect("sk-secret-1234", "key=sk-secret-1234, sk-secret-123 sk-secret-1234sk-secret-1234",
           "key=***, sk-secret-123 ******");
    expect("aabaab", "aabaabaab", "***"); /* overlapping finds are one */
    expect("secret", "secre", "secre");
    expect("secret", "xsecret", "x***");
}

static void test_L_40_longest_of_two(void **state)
{
    (void)state;
    const char *const secrets[] = {"abcdef", "abcdefghijkl", "ijklmnop"};
    for (size_t piece = 1; piece < 20; piece++) {
        char *got = masked(secrets, 3, "-abcdefghijkl-abcdefghijk-abcdefghijklmnop-", piece);
        assert_string_equal(got, "-***-***ghijk-***-");
        free(got);
    }
}

static void test_L_40_encodings(void **state)
{
    (void)state;
    static const char secret[] = "pa\"ss/w\\ord?>>~\xC3\xA4";
    /* made with Python: base64, hex, urllib.parse.quote and json.dumps */
    expect(secret, "a cGEic3MvdyJvcmQ=", "a cGEic3MvdyJvcmQ="); /* another text */
    expect(secret, "0 cGEic3MvdzxvcmQ/Pj5+w6Q= .", "0 cGEic3MvdzxvcmQ/Pj5+w6Q= .");
    expect(secret, "hex 70612273732f775c6f72643f3e3e7ec3a4", "hex ***");
    expect(secret, "HEX 70612273732F775C6F72643F3E3E7EC3A4", "HEX ***");
    expect(secret, "url pa%22ss%2Fw%5Cord%3F%3E%3E~%C3%A4!", "url ***!");
    expect(secret, "url pa%22ss%2fw%5cord%3f%3e%3e~%c3%a4!", "url ***!");
    expect(secret, "json \"pa\\\"ss/w\\\\ord?>>~\xC3\xA4\"", "json \"***\"");
    expect(secret, "json \"pa\\\"ss\\/w\\\\ord?>>~\xC3\xA4\"", "json \"***\"");
}

static size_t encode(const unsigned char *bytes, size_t len, bool url, char *out)
{
    const char *alphabet = url ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                               : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (size_t i = 0; i < len; i += 3) {
        unsigned v = (unsigned)bytes[i] << 16 | (i + 1 < len ? (unsigned)bytes[i + 1] << 8 : 0u) |
                     (i + 2 < len ? bytes[i + 2] : 0u);
        for (int k = 0; k < 4; k++) {
            bool pad = (k == 2 && i + 1 >= len) || (k == 3 && i + 2 >= len);
            out[n++] = pad ? '=' : alphabet[v >> (18 - 6 * k) & 63];
        }
    }
    out[n] = '\0';
    return n;
}

static void test_L_40_base64_in_every_alignment(void **state)
{
    (void)state;
    static const char secret[] = "\xFB\xEF\xFE\xFFtoken-\xFF\xFE";
    const char *const secrets[] = {secret};
    for (int url = 0; url < 2; url++) {
        for (size_t before = 0; before < 6; before++) {
            for (size_t after = 0; after < 4; after++) {
                char plain[64];
                char text[128];
                memset(plain, 'x', sizeof(plain));
                memcpy(plain + before, secret, sizeof(secret) - 1);
                encode((unsigned char *)plain, before + sizeof(secret) - 1 + after, url != 0, text);
                char *got = masked(secrets, 1, text, 5);
                assert_non_null(strstr(got, "***"));
                assert_null(strstr(got, "b2tlbi")); /* the inner part of any alignment: "oken-" */
                assert_null(strstr(got, "9rZW4t"));
                assert_null(strstr(got, "Rva2Vu"));
                assert_true(strlen(got) < 12 + 8);
                free(got);
            }
        }
    }
}

static void test_L_40_lines_of_a_key(void **state)
{
    (void)state;
    static const char pem[] =
        "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0\nshort\n-----END KEY-----";
    expect(pem, "line MIIBVgIBADANBgkqhkiG9w0.", "line ***.");
    expect(pem, "short", "short");
}

static void test_short_secrets_are_not_masked(void **state)
{
    (void)state;
    expect("12345", "12345", "12345");
    expect("123456", "123456", "***");
}

static void test_nothing_to_mask(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    mask_add(mask_nothing(), "abc", 3, &out);
    assert_string_equal(out.data, "abc");
    buf_done(&out);
}

/* Against the plain definition, on texts made of few letters so that much overlaps. */
static void test_L_40_against_definition(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    for (int round = 0; round < 400; round++) {
        char secret[2][12];
        char text[200];
        char want[700] = "";
        bool covered[200] = {false};
        bool begins[200] = {false};
        for (int s = 0; s < 2; s++) {
            seed = seed * 1664525u + 1013904223u;
            size_t n = 6 + (seed >> 20) % 5;
            for (size_t i = 0; i < n; i++) {
                seed = seed * 1664525u + 1013904223u;
                secret[s][i] = "ab"[seed >> 31];
            }
            secret[s][n] = '\0';
        }
        for (size_t i = 0; i < 199; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = "ab"[seed >> 31];
        }
        text[199] = '\0';
        for (size_t at = 0; at < 199; at++) {
            for (int s = 0; s < 2; s++) {
                if (strncmp(text + at, secret[s], strlen(secret[s])) == 0) {
                    begins[at] = begins[at] || !covered[at];
                    memset(covered + at, 1, strlen(secret[s]));
                }
            }
        }
        for (size_t at = 0; at < 199; at++) {
            if (begins[at]) {
                strcat(want, "***");
            } else if (!covered[at]) {
                strncat(want, text + at, 1);
            }
        }
        const char *const secrets[] = {secret[0], secret[1]};
        char *got = masked(secrets, 2, text, 1 + (size_t)round % 17);
        assert_string_equal(got, want);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_L_40_as_it_is_in_any_pieces),
        cmocka_unit_test(test_L_40_longest_of_two),
        cmocka_unit_test(test_L_40_encodings),
        cmocka_unit_test(test_L_40_base64_in_every_alignment),
        cmocka_unit_test(test_L_40_lines_of_a_key),
        cmocka_unit_test(test_short_secrets_are_not_masked),
        cmocka_unit_test(test_nothing_to_mask),
        cmocka_unit_test(test_L_40_against_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
