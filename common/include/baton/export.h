/* Attributes of Baton's public declarations. */
#ifndef BATON_EXPORT_H
#define BATON_EXPORT_H

#if defined(__GNUC__)
#define BATON_API __attribute__((visibility("default")))
#define BATON_MUST_USE __attribute__((warn_unused_result))
#define BATON_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define BATON_API
#define BATON_MUST_USE
#define BATON_PRINTF(a, b)
#endif

#endif
