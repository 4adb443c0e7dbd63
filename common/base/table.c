/* Tables for people. Called by every verb that lists. */
#include "common/base/table.h"

#include "common/base/check.h"
#include "common/base/text.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 16
#define GAP 2
#define LAST 12
#define NARROW 8 /* no column is cut below this, or below its title */

struct cell {
    size_t begin; /* in text, escaped */
    size_t len;
    size_t width;
    bool number;
    bool whole; /* of no use when cut: a number, a time */
};

struct table {
    const char *titles[COLUMNS_MAX];
    size_t n_columns;
    struct buf text;
    struct cell *cells;
    size_t n_cells;
    size_t cap;
    bool broken;
};

struct table *table_new(const char *const *titles, size_t n_columns)
{
    BATON_PRE(n_columns > 0 && n_columns <= COLUMNS_MAX);
    struct table *table = calloc(1, sizeof(*table));
    if (table != NULL) {
        memcpy(table->titles, titles, n_columns * sizeof(titles[0]));
        table->n_columns = n_columns;
    }
    return table;
}

static void cell_add(struct table *table, const void *bytes, size_t len, bool number, bool whole)
{
    if (table->n_cells == table->cap) {
        size_t cap = table->cap == 0 ? 64 : table->cap * 2;
        struct cell *cells = realloc(table->cells, cap * sizeof(*cells));
        if (cells == NULL) {
            table->broken = true;
            return;
        }
        table->cells = cells;
        table->cap = cap;
    }
    size_t begin = table->text.len;
    text_add(&table->text, bytes, len, 0);
    if (!buf_ok(&table->text)) {
        table->broken = true;
        return;
    }
    size_t n = table->text.len - begin;
    size_t width = n > 0 ? text_width(table->text.data + begin, n) : 0;
    table->cells[table->n_cells++] = (struct cell){begin, n, width, number, whole};
}

void table_bytes(struct table *table, const void *bytes, size_t len)
{
    cell_add(table, bytes, len, false, false);
}

void table_text(struct table *table, const char *text)
{
    cell_add(table, text != NULL ? text : "-", text != NULL ? strlen(text) : 1, false, false);
}

void table_whole(struct table *table, const char *text)
{
    cell_add(table, text != NULL ? text : "-", text != NULL ? strlen(text) : 1, false, true);
}

void table_int(struct table *table, int64_t value)
{
    struct buf text = BUF_INIT;
    buf_add_int(&text, value);
    if (buf_ok(&text)) {
        cell_add(table, text.data, text.len, true, true);
    } else {
        table->broken = true;
    }
    buf_done(&text);
}

size_t table_rows(const struct table *table)
{
    return table->n_cells / table->n_columns;
}

static size_t least_width(const struct table *table, size_t column)
{
    size_t least = strlen(table->titles[column]);
    least = least > NARROW ? least : NARROW;
    for (size_t i = column; i < table->n_cells; i += table->n_columns) {
        const struct cell *cell = &table->cells[i];
        least = cell->whole && cell->width > least ? cell->width : least;
    }
    return least;
}

/* How wide each column is: as needed, then the widest give way until all fit or no more can be
 * cut. The first holds ids, which are of no use when cut. What is whole in the last may run over
 * the edge, where it can still be read; it counts as LAST, or all others would pay for it. */
static void fit(const struct table *table, size_t width, size_t *ret_widths)
{
    size_t least[COLUMNS_MAX];
    size_t total = GAP * (table->n_columns - 1);
    for (size_t c = 0; c < table->n_columns; c++) {
        ret_widths[c] = strlen(table->titles[c]);
        for (size_t i = c; i < table->n_cells; i += table->n_columns) {
            ret_widths[c] =
                table->cells[i].width > ret_widths[c] ? table->cells[i].width : ret_widths[c];
        }
        least[c] = least_width(table, c);
        bool over = c + 1 == table->n_columns && least[c] > LAST;
        total += over ? LAST : ret_widths[c];
    }
    while (width > 0 && total > width) {
        size_t widest = 0;
        for (size_t c = 1; c < table->n_columns; c++) {
            if (ret_widths[c] > least[c] && (widest == 0 || ret_widths[c] > ret_widths[widest])) {
                widest = c;
            }
        }
        if (widest == 0) {
            return;
        }
        ret_widths[widest]--;
        total--;
    }
}

static void blanks(struct buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, ' ');
    }
}

/* Adds at most width columns of a text; returns the columns used. */
static size_t add_cut(struct buf *out, const char *text, size_t len, size_t text_columns,
                      size_t width)
{
    if (text_columns <= width) {
        buf_add(out, text, len);
        return text_columns;
    }
    size_t used = 0;
    size_t i = 0;
    while (i < len) {
        uint32_t point;
        size_t n = text_utf8_next(text + i, len - i, &point);
        n = n > 0 ? n : 1;
        size_t columns = text_width(text + i, n);
        if (used + columns + 3 > width) {
            break;
        }
        used += columns;
        i += n;
    }
    buf_add(out, text, i);
    buf_add_text(out, "...");
    return used + 3;
}

static void row_print(const struct table *table, size_t row, const size_t *widths, struct buf *out)
{
    size_t owed = 0; /* blanks before the next cell that shows anything */
    for (size_t c = 0; c < table->n_columns; c++) {
        const struct cell *cell = &table->cells[row * table->n_columns + c];
        size_t left = cell->number && cell->width < widths[c] ? widths[c] - cell->width : 0;
        if (cell->len == 0) {
            owed += widths[c] + GAP;
            continue;
        }
        blanks(out, owed + left);
        size_t used =
            add_cut(out, table->text.data + cell->begin, cell->len, cell->width, widths[c]);
        owed = widths[c] - left - (used < widths[c] - left ? used : widths[c] - left) + GAP;
    }
    buf_add_char(out, '\n');
}

bool table_print(const struct table *table, size_t width, struct buf *out)
{
    size_t widths[COLUMNS_MAX];
    BATON_PRE(table->broken || table->n_cells % table->n_columns == 0);
    if (table->broken) {
        return false;
    }
    fit(table, width, widths);
    for (size_t c = 0; c < table->n_columns; c++) {
        bool number = table->n_cells > 0 && table->cells[c].number;
        size_t len = strlen(table->titles[c]);
        blanks(out, number ? widths[c] - len : 0);
        buf_add_text(out, table->titles[c]);
        if (c + 1 < table->n_columns) {
            blanks(out, (number ? 0 : widths[c] - len) + GAP);
        }
    }
    buf_add_char(out, '\n');
    for (size_t row = 0; row < table_rows(table); row++) {
        row_print(table, row, widths, out);
    }
    return buf_ok(out);
}

void table_free(struct table *table)
{
    if (table != NULL) {
        buf_done(&table->text);
        free(table->cells);
        free(table);
    }
}
