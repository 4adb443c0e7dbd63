/* Counts the words of standard input. */
#include <ctype.h>
#include <stdio.h>

int main(void)
{
    long words = 0;
    int inside = 0;
    int c;
    while ((c = getchar()) != EOF) {
        if (isspace(c)) {
            inside = 0;
        } else if (!inside) {
            inside = 1;
            words++;
        }
    }
    printf("%ld\n", words);
    return 0;
}
