/* Moves beats through a network, unit by unit: the processes of processes.py, line_buffers.py and least_processes.py.
 *
 * Times are cycles. A unit continues as far as the known times allow; it returns when it needs a time that is not known
 * yet, and is called again when a stream next to it has changed. kernel.py compiles this file and calls it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

/* A sequence that grows at its end. */
typedef struct {
    i64 *at, count, room;
} series;

/* A stream between two units, as `processes.Wire`. */
typedef struct {
    series due, consumed;
    i64 known_due, known_consumed, producer, consumer, frozen;
} stream;

/* `line_buffers.EnableClock`. */
typedef struct {
    i64 lost, passed;
} enable_clock;

/* A unit: its streams, the parameters that `kernel_units` states, and the state of its process. */
typedef struct {
    i64 kind, ins, outs, queued;
    stream **in, **out;
    const i64 *number, *table[3];
    i64 length[3];
    i64 k, t, place, pending, passed, lost, lateness, second_lateness;
    i64 stored, freed, freed_beats, emitted, offered, needed, window, oldest, free;
    enable_clock reader, writer;
    series starts; /* windows: start of each window; matrix: cycle in which each beat is multiplied for the last time */
    i64 *forwarded; /* route: beats of each input that are on offer or gone */
} unit;

typedef struct {
    i64 units, streams, failed;
    unit *unit;
    stream *stream;
    i64 *queue;
} network;

enum { IDLE, SINK, PIPELINE, JOIN, FIFO, WIDTH, FORK, ROUTE, KEEP, WINDOWS, MATRIX, SINGLE, ROWS, SUMS, BLOCKS };

static i64 most(i64 a, i64 b) { return a > b ? a : b; }

static void push(network *net, series *s, i64 value) {
    if (s->count == s->room) {
        i64 room = s->room ? 2 * s->room : 64;
        i64 *at = realloc(s->at, (size_t)room * sizeof *at);
        if (!at) {
            net->failed = 1;
            return;
        }
        s->at = at;
        s->room = room;
    }
    s->at[s->count++] = value;
}

/* Cycle in which beat k of the input is offered, if beat k - 1 was consumed in cycle t, `lateness` after it was due. */
static i64 arrival(const stream *in, i64 k, i64 t, i64 lateness) {
    i64 due = in->due.at[k];
    return in->frozen ? due + lateness : most(due, t + 1);
}

/* Cycle in which the first unconsumed beat is offered. */
static i64 next_offer(const stream *in) {
    i64 k = in->consumed.count;
    if (!k) return in->due.at[0];
    if (in->frozen) return in->due.at[k] + in->consumed.at[k - 1] - in->due.at[k - 1];
    return most(in->due.at[k], in->consumed.at[k - 1] + 1);
}

static void sink(network *net, unit *u) {
    stream *in = u->in[0];
    while (in->consumed.count < in->due.count && !net->failed) {
        i64 cycle = next_offer(in);
        if (u->length[0])
            while (!u->table[0][cycle % u->length[0]]) cycle++;
        push(net, &in->consumed, cycle);
    }
}

/* Passes the emitted beats that are due by cycle u->t, which a waiting beat moves; 0 if a departure is not known. */
static int pass(unit *u) {
    stream *out = u->out[0];
    while (u->passed < out->due.count && out->due.at[u->passed] + u->lost <= u->t) {
        if (u->passed == out->consumed.count) return 0;
        u->lost = out->consumed.at[u->passed] - out->due.at[u->passed];
        u->t = most(u->t, out->consumed.at[u->passed]);
        u->passed++;
    }
    return 1;
}

static void pipeline(network *net, unit *u) { /* number: latency; table 0: emits */
    stream *in = u->in[0], *out = u->out[0];
    while (u->k < in->due.count && !net->failed) {
        if (!u->pending) u->t = arrival(in, u->k, u->t, u->lateness);
        u->pending = 1;
        if (!pass(u)) return;
        u->pending = 0;
        push(net, &in->consumed, u->t);
        u->lateness = u->t - in->due.at[u->k++];
        if (u->table[0][u->place]) push(net, &out->due, u->t - u->lost + u->number[0]);
        if (++u->place == u->length[0]) u->place = 0;
    }
}

static void join(network *net, unit *u) { /* number: latency, beats per second; table 0: emits */
    stream *first = u->in[0], *second = u->in[1], *out = u->out[0];
    i64 beats_per_second = u->number[1];
    while (u->k < first->due.count && u->k / beats_per_second < second->due.count && !net->failed) {
        i64 n = u->k / beats_per_second;
        if (!u->pending)
            u->t = most(u->t + 1, most(first->due.at[u->k] + u->lateness, second->due.at[n] + u->second_lateness));
        u->pending = 1;
        if (!pass(u)) return;
        u->pending = 0;
        push(net, &first->consumed, u->t);
        u->lateness = first->frozen ? u->t - first->due.at[u->k] : 0;
        if (u->k % beats_per_second == beats_per_second - 1) {
            push(net, &second->consumed, u->t);
            u->second_lateness = second->frozen ? u->t - second->due.at[n] : 0;
        }
        if (u->table[0][u->k % u->length[0]]) push(net, &out->due, u->t - u->lost + u->number[0]);
        u->k++;
    }
}

static void fifo(network *net, unit *u) { /* number: depth, delay */
    stream *in = u->in[0], *out = u->out[0];
    i64 depth = u->number[0];
    while (u->k < in->due.count && !net->failed) {
        i64 t = arrival(in, u->k, u->t, u->lateness);
        if (u->k >= depth) {
            if (u->k - depth >= out->consumed.count) return;
            t = most(t, out->consumed.at[u->k - depth] + 1);
        }
        u->t = t;
        push(net, &in->consumed, t);
        u->lateness = t - in->due.at[u->k++];
        push(net, &out->due, t + u->number[1]);
    }
}

static void width(network *net, unit *u) { /* tables: enters, leaves, rooms */
    stream *in = u->in[0], *out = u->out[0];
    const i64 *enters = u->table[0], *leaves = u->table[1], *rooms = u->table[2];
    while (u->k < in->due.count && !net->failed) {
        if (!u->pending) u->t = arrival(in, u->k, u->t, u->lateness);
        u->pending = 1;
        while (u->stored - u->freed > rooms[u->k % u->length[2]]) {
            if (u->freed_beats == out->consumed.count) return;
            u->t = most(u->t, out->consumed.at[u->freed_beats] + 1);
            u->freed += leaves[u->freed_beats++ % u->length[1]];
        }
        u->pending = 0;
        push(net, &in->consumed, u->t);
        u->lateness = u->t - in->due.at[u->k];
        u->stored += enters[u->k++ % u->length[0]];
        while (u->offered <= u->stored && !net->failed) {
            push(net, &out->due, u->t + 1);
            u->offered += leaves[++u->emitted % u->length[1]];
        }
    }
}

static void fork_beats(network *net, unit *u) {
    stream *in = u->in[0];
    while (u->k < in->due.count && !net->failed) {
        if (!u->pending) {
            u->t = arrival(in, u->k, u->t, u->lateness);
            for (i64 n = 0; n < u->outs; n++) push(net, &u->out[n]->due, u->t);
        }
        u->pending = 1;
        for (i64 n = 0; n < u->outs; n++) {
            if (u->out[n]->consumed.count <= u->k) return;
            u->t = most(u->t, u->out[n]->consumed.at[u->k]);
        }
        u->pending = 0;
        push(net, &in->consumed, u->t);
        u->lateness = u->t - in->due.at[u->k++];
    }
}

static void route(network *net, unit *u) { /* table 0: order */
    stream *out = u->out[0];
    const i64 *order = u->table[0];
    do {
        for (; !net->failed; u->place = u->place + 1 == u->length[0] ? 0 : u->place + 1) {
            i64 selected = order[u->place];
            if (selected < 0 && u->place) {
                push(net, &out->due, 0);
                continue;
            }
            stream *in = u->in[most(selected, 0)];
            i64 *forwarded = &u->forwarded[most(selected, 0)], k = *forwarded;
            if (k == in->due.count || (in->frozen && k > in->consumed.count)) break;
            push(net, &out->due,
                 in->due.at[k] + (in->frozen && k ? in->consumed.at[k - 1] - in->due.at[k - 1] : 0));
            if (selected >= 0) ++*forwarded;
        }
        if (u->k == out->consumed.count) return;
        while (u->k < out->consumed.count && !net->failed) {
            if (order[u->window] >= 0) push(net, &u->in[order[u->window]]->consumed, out->consumed.at[u->k]);
            u->window = u->window + 1 == u->length[0] ? 0 : u->window + 1;
            u->k++;
        }
    } while (!net->failed);
}

static void keep(network *net, unit *u) { /* table 0: keeps */
    stream *in = u->in[0], *out = u->out[0];
    while (u->k < in->due.count && !net->failed) {
        if (!u->pending) {
            u->t = arrival(in, u->k, u->t, u->lateness);
            if (u->table[0][u->place]) {
                push(net, &out->due, u->t);
                u->pending = 1;
            }
        }
        if (u->pending) {
            if (out->consumed.count < out->due.count) return;
            u->t = out->consumed.at[out->consumed.count - 1];
            u->pending = 0;
        }
        if (++u->place == u->length[0]) u->place = 0;
        push(net, &in->consumed, u->t);
        u->lateness = u->t - in->due.at[u->k++];
    }
}

/* 1 and the first enabled cycle that is not before `cycle`, or 0 if it is not known yet. It may be negative. */
static int enabled_from(enable_clock *clock, const stream *out, i64 cycle, i64 *enabled) {
    while (clock->passed < out->due.count && out->due.at[clock->passed] + clock->lost <= cycle) {
        if (clock->passed == out->consumed.count) return 0;
        i64 departure = out->consumed.at[clock->passed];
        clock->lost = departure - out->due.at[clock->passed++];
        cycle = most(cycle, departure);
    }
    *enabled = cycle - clock->lost;
    return 1;
}

/* 1 and the cycle in which an enabled cycle ends, or 0 if it is not known yet. */
static int cycle_of(enable_clock *clock, const stream *out, i64 enabled, i64 *cycle) {
    while (clock->passed < out->due.count && out->due.at[clock->passed] <= enabled) {
        if (clock->passed == out->consumed.count) return 0;
        clock->lost = out->consumed.at[clock->passed] - out->due.at[clock->passed];
        clock->passed++;
    }
    *cycle = enabled + clock->lost;
    return 1;
}

/* Entry n of a table that repeats for every frame, each time increased by `words`. */
static i64 in_frames(const unit *u, int table, i64 n, i64 words) {
    return n / u->length[table] * words + u->table[table][n % u->length[table]];
}

static int start_windows(network *net, unit *u) {
    stream *in = u->in[0], *out = u->out[0];
    i64 words = u->number[0], period = u->number[2], lag = u->number[3], first = u->number[4], step = u->number[5];
    i64 started_before = u->starts.count;
    while (!net->failed) {
        i64 needed = in_frames(u, 0, u->starts.count, words);
        if (needed >= in->consumed.count) break;
        i64 stored = in->consumed.at[needed] + 1 + lag;
        i64 start = u->starts.count ? u->starts.at[u->starts.count - 1] + period : 0;
        if (stored - u->reader.lost > start) {
            i64 enabled;
            if (!enabled_from(&u->reader, out, stored, &enabled)) break;
            start = most(start, enabled);
        }
        push(net, &u->starts, start);
        for (i64 n = 0; n < period; n += step) push(net, &out->due, start + first + n);
    }
    return u->starts.count > started_before;
}

static int store_words(network *net, unit *u) {
    stream *in = u->in[0], *out = u->out[0];
    i64 words = u->number[0], depth = u->number[1], period = u->number[2];
    i64 stored_before = in->consumed.count;
    while (in->consumed.count < in->due.count && !net->failed) {
        i64 overwritten = in->consumed.count - depth;
        i64 oldest_kept = in_frames(u, 1, u->window, words);
        while (oldest_kept <= overwritten && u->window < u->starts.count)
            oldest_kept = in_frames(u, 1, ++u->window, words);
        if (oldest_kept <= overwritten) break; /* by a window that has not started */
        if (u->emitted < u->window) {
            i64 end;
            if (!cycle_of(&u->writer, out, u->starts.at[u->window - 1] + period - 1, &end)) break;
            u->emitted = u->window;
            u->free = end + 1;
        }
        push(net, &in->consumed, most(next_offer(in), u->free));
    }
    return in->consumed.count > stored_before;
}

static int multiply_beats(network *net, unit *u) {
    stream *in = u->in[0], *out = u->out[0];
    i64 length = u->number[0], passes = u->number[1], tail = u->number[2];
    i64 read_before = u->k;
    while (u->k < in->consumed.count && !net->failed) {
        /* A beat needs two cycles from the port to the multipliers. */
        i64 enabled;
        if (!enabled_from(&u->reader, out, in->consumed.at[u->k] + 2, &enabled)) break;
        u->t = most(enabled, u->t + 1);
        u->k++;
        if (passes == 1) push(net, &u->starts, u->t);
        if (u->k % length == 0) {
            for (i64 pass = 0; pass < passes; pass++) push(net, &out->due, u->t + tail + pass * length);
            u->t += (passes - 1) * length;
            if (passes > 1)
                for (i64 n = 1; n <= length; n++) push(net, &u->starts, u->t - length + n);
        }
    }
    return u->k > read_before;
}

static int store_beats(network *net, unit *u) {
    stream *in = u->in[0], *out = u->out[0];
    i64 length = u->number[0], repeated = u->number[1] > 1;
    i64 depth = !repeated && length > 2 ? 4 : 2 * length;
    i64 stored_before = in->consumed.count;
    while (in->consumed.count < in->due.count && !net->failed) {
        i64 cycle = next_offer(in), overwritten = in->consumed.count - depth;
        if (overwritten >= 0) {
            /* Its place is read when the previous beat enters the multipliers, or later. */
            if (u->starts.count < overwritten + repeated) break;
            i64 read = -1, end;
            if (repeated)
                read = u->starts.at[overwritten] - (length > 1);
            else if (overwritten)
                read = u->starts.at[overwritten - 1];
            if (!cycle_of(&u->writer, out, read, &end)) break;
            cycle = most(cycle, end + 1);
        }
        push(net, &in->consumed, cycle);
    }
    return in->consumed.count > stored_before;
}

static void single(network *net, unit *u) { /* table 0: emits */
    stream *out = u->out[0];
    while (out->consumed.count == out->due.count && !net->failed) {
        for (i64 n = 0; n < u->ins; n++)
            if (u->k >= u->in[n]->due.count) return;
        for (i64 n = 0; n < u->ins; n++) push(net, &u->in[n]->consumed, u->k);
        if (u->table[0][u->k % u->length[0]]) push(net, &out->due, u->k);
        u->k++;
    }
}

static void rows(network *net, unit *u) { /* number: beats per second */
    stream *first = u->in[0], *second = u->in[1], *out = u->out[0];
    while (u->k < first->due.count && u->k / u->number[0] < second->due.count &&
           out->consumed.count == out->due.count && !net->failed) {
        push(net, &first->consumed, u->k);
        if (u->k % u->number[0] == u->number[0] - 1) push(net, &second->consumed, u->k);
        push(net, &out->due, u->k++);
    }
}

static void sums(network *net, unit *u) { /* number: length */
    stream *in = u->in[0], *out = u->out[0];
    i64 length = u->number[0], room = length > 2 ? 4 : 2 * length;
    for (int moved = 1; moved && !net->failed;) {
        moved = 0;
        while (u->passed < u->k && out->consumed.count == out->due.count && !net->failed) {
            if (++u->passed % length == 0) push(net, &out->due, 0);
            moved = 1;
        }
        while (u->k < in->due.count && u->k < u->passed + room && !net->failed) {
            push(net, &in->consumed, 0);
            u->k++;
            moved = 1;
        }
    }
}

static void blocks(network *net, unit *u) { /* number: words, depth, beats of a window; tables: needs, keeps */
    stream *in = u->in[0], *out = u->out[0];
    i64 words = u->number[0], depth = u->number[1], beats = u->number[2];
    for (int moved = 1; moved && !net->failed;) {
        moved = 0;
        while (in_frames(u, 0, u->window, words) < u->k && out->consumed.count == out->due.count && !net->failed) {
            push(net, &out->due, 0);
            if (++u->emitted == beats) {
                u->window++;
                u->emitted = 0;
            }
            moved = 1;
        }
        while (u->k < in->due.count && u->k - depth < in_frames(u, 1, u->window, words) && !net->failed) {
            push(net, &in->consumed, 0);
            u->k++;
            moved = 1;
        }
    }
}

static void step(network *net, unit *u) {
    int moved = 1;
    switch (u->kind) {
    case SINK: sink(net, u); break;
    case PIPELINE: pipeline(net, u); break;
    case JOIN: join(net, u); break;
    case FIFO: fifo(net, u); break;
    case WIDTH: width(net, u); break;
    case FORK: fork_beats(net, u); break;
    case ROUTE: route(net, u); break;
    case KEEP: keep(net, u); break;
    case WINDOWS: /* number: words, depth, period, lag, first, step; tables: needs, keeps */
        while (moved && !net->failed) moved = start_windows(net, u) | store_words(net, u);
        break;
    case MATRIX: /* number: length, repeat, tail */
        while (moved && !net->failed) moved = multiply_beats(net, u) | store_beats(net, u);
        break;
    case SINGLE: single(net, u); break;
    case ROWS: rows(net, u); break;
    case SUMS: sums(net, u); break;
    case BLOCKS: blocks(net, u); break;
    default: break;
    }
}

void hg_free(network *net) {
    if (!net) return;
    for (i64 n = 0; net->unit && n < net->units; n++) {
        free(net->unit[n].in);
        free(net->unit[n].forwarded);
        free(net->unit[n].starts.at);
    }
    for (i64 n = 0; net->stream && n < net->streams; n++) {
        free(net->stream[n].due.at);
        free(net->stream[n].consumed.at);
    }
    free(net->unit);
    free(net->stream);
    free(net->queue);
    free(net);
}

network *hg_new(i64 units, i64 streams) {
    network *net = calloc(1, sizeof *net);
    if (!net) return NULL;
    net->units = units;
    net->streams = streams;
    net->unit = calloc((size_t)units, sizeof *net->unit);
    net->stream = calloc((size_t)streams, sizeof *net->stream);
    net->queue = calloc((size_t)units, sizeof *net->queue);
    if (net->unit && net->stream && net->queue) return net;
    hg_free(net);
    return NULL;
}

/* Describes unit n: its kind, then the counts and entries of inputs, outputs, whether these are frozen, parameters and
 * three tables. The words have to stay in memory as long as the network. Returns 0 without memory. */
int hg_unit(network *net, i64 n, const i64 *word) {
    unit *u = &net->unit[n];
    u->kind = *word++;
    u->ins = *word++;
    const i64 *ins = word;
    word += u->ins;
    u->outs = *word++;
    const i64 *outs = word;
    word += u->outs;
    i64 frozen = *word++;
    u->in = calloc((size_t)(u->ins + u->outs + 1), sizeof *u->in);
    u->forwarded = calloc((size_t)(u->ins + 1), sizeof *u->forwarded);
    if (!u->in || !u->forwarded) return 0;
    u->out = u->in + u->ins;
    for (i64 k = 0; k < u->ins; k++) {
        u->in[k] = &net->stream[ins[k]];
        u->in[k]->consumer = n;
    }
    for (i64 k = 0; k < u->outs; k++) {
        u->out[k] = &net->stream[outs[k]];
        u->out[k]->producer = n;
        u->out[k]->frozen = frozen;
    }
    i64 numbers = *word++;
    u->number = word;
    word += numbers;
    for (int k = 0; k < 3; k++) {
        u->length[k] = *word++;
        u->table[k] = word;
        word += u->length[k];
    }
    u->t = -1;
    if (u->kind == WIDTH) u->offered = u->table[1][0];
    return 1;
}

/* Adds the times first + n * step, for n below `count`, at which beats of a stream are offered. */
void hg_offer(network *net, i64 stream, i64 first, i64 step, i64 count) {
    for (i64 n = 0; n < count && !net->failed; n++) push(net, &net->stream[stream].due, first + n * step);
}

/* Lets units move until nothing moves, beginning at the sources. Returns 0 without memory. */
int hg_settle(network *net) {
    i64 head = 0, waiting = 0;
    for (i64 n = 0; n < net->units; n++)
        if ((net->unit[n].queued = !net->unit[n].ins)) net->queue[waiting++] = n;
    while (waiting && !net->failed) {
        unit *u = &net->unit[net->queue[head]];
        head = head + 1 == net->units ? 0 : head + 1;
        waiting--;
        u->queued = 0;
        step(net, u);
        for (i64 k = 0; k < u->ins + u->outs; k++) {
            stream *s = u->in[k];
            i64 next = k < u->ins ? s->producer : s->consumer;
            i64 count = k < u->ins ? s->consumed.count : s->due.count;
            i64 *known = k < u->ins ? &s->known_consumed : &s->known_due;
            if (count == *known) continue;
            *known = count;
            if (net->unit[next].queued) continue;
            net->unit[next].queued = 1;
            net->queue[(head + waiting++) % net->units] = next;
        }
    }
    return !net->failed;
}

/* The number of times of a stream, and the times: 0: due, 1: consumed. */
i64 hg_times(const network *net, i64 stream, i64 consumed, const i64 **times) {
    const series *s = consumed ? &net->stream[stream].consumed : &net->stream[stream].due;
    *times = s->at;
    return s->count;
}

/* The number of beats that moved, on all streams together. */
i64 hg_moved(const network *net) {
    i64 moved = 0;
    for (i64 n = 0; n < net->streams; n++) moved += net->stream[n].consumed.count;
    return moved;
}

/* The number of started windows of a unit, and their starts in enabled cycles. */
i64 hg_starts(const network *net, i64 unit, const i64 **times) {
    *times = net->unit[unit].starts.at;
    return net->unit[unit].starts.count;
}

/* 1 if, on all streams, the last frames moved exactly `cycles` after the frames `period` frames earlier. */
int hg_alike(const network *net, i64 frames, i64 last, i64 period, i64 cycles) {
    for (i64 n = 0; n < net->streams; n++) {
        const series *s = &net->stream[n].consumed;
        i64 beats = s->count / frames, lag = period * beats;
        for (i64 k = s->count - last * beats; k < s->count; k++)
            if (s->at[k] - s->at[k - lag] != cycles) return 0;
    }
    return 1;
}
