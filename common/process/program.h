/* Finds the programs that configurations and workflows name, whatever PATH this process has. Any thread. */
#ifndef BATON_PROCESS_PROGRAM_H
#define BATON_PROCESS_PROGRAM_H

/* The PATH in which programs are looked up, and which executors and hooks get. */
#define PROGRAM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The absolute path of a program, a plain name looked up there; the caller frees it. NULL: it is not
 * there, or no executable file. */
char *program_find(const char *name);

#endif
