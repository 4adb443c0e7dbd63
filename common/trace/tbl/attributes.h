/*
 * Every attribute that a span may have: this list is closed. Ids, words of closed lists and numbers; nothing that
 * an origin, an executor or a provider wrote: no payload, summary, note, output or value of an environment.
 *
 * ATTRIBUTE(id, key). Where the conventions of OpenTelemetry for messaging have a key, it is theirs.
 */
#ifndef BATON_COMMON_TRACE_TBL_ATTRIBUTES_H
#define BATON_COMMON_TRACE_TBL_ATTRIBUTES_H

/* clang-format off */
#define SPAN_ATTRIBUTES(ATTRIBUTE) \
    ATTRIBUTE(system,      "messaging.system")                    /* kafka; baton: the local log */ \
    ATTRIBUTE(operation,   "messaging.operation.name")            /* the first word of the span's name */ \
    ATTRIBUTE(type,        "messaging.operation.type")            /* send, receive, process, settle */ \
    ATTRIBUTE(topic,       "messaging.destination.name") \
    ATTRIBUTE(partition,   "messaging.destination.partition.id") \
    ATTRIBUTE(offset,      "messaging.kafka.offset") \
    ATTRIBUTE(group,       "messaging.consumer.group.name") \
    ATTRIBUTE(message,     "messaging.message.id")                /* <turn id>.<attempt> */ \
    ATTRIBUTE(error,       "error.type")                          /* class of a failure, or a code */ \
    ATTRIBUTE(turn,        "baton.turn.id") \
    ATTRIBUTE(attempt,     "baton.attempt") \
    ATTRIBUTE(role,        "baton.role") \
    ATTRIBUTE(service,     "baton.service") \
    ATTRIBUTE(task,        "baton.task.id") \
    ATTRIBUTE(task_rev,    "baton.task.rev") \
    ATTRIBUTE(run,         "baton.run.id") \
    ATTRIBUTE(epoch,       "baton.run.epoch") \
    ATTRIBUTE(state,       "baton.state")                         /* of turn or run, afterwards */ \
    ATTRIBUTE(executor,    "baton.executor")                      /* exec, child, agent, callback */ \
    ATTRIBUTE(profile,     "baton.profile")                       /* the name of a credential profile */ \
    ATTRIBUTE(to,          "baton.to")                            /* the service that gets the turn */ \
    ATTRIBUTE(transition,  "baton.transition") \
    ATTRIBUTE(slot,        "baton.slot")
/* clang-format on */

#endif
