/*
 * page.js: draws what the driver says of its job. Each message has the whole state, so a message may be lost; only
 * changes and events are kept from one message to the next. The file that the verb "page" has written has one message
 * and what events.log tells (history.h); it stays as it is. All names and texts of the job reach the page as text
 * (textContent), never as HTML; the policy of the page refuses anything else.
 */
'use strict';

const KEPT_EVENTS = 3000, SHOWN_EVENTS = 400, SHOWN_CHANGES = 200, SHOWN_WORKERS = 64, SILENT_MS = 4000;
const CAUSES = ['first', 'switch', 'recovery'];
const PHASES = [
  ['detect', 'detect_us', 'members stand still, and the driver does not know it yet'],
  ['agree', 'agree_us', 'members stop, and all are told of the round'],
  ['rebuild', 'rebuild_us', 'connections and reset callbacks'],
  ['state', 'state_us', 'members get the training state'],
  ['first step', 'first_step_us', 'until the first step has been made'],
];
const USES = {
  training: 'training', start: 'start', recovery: 'losses: agreeing', rebuild: 'losses: rebuilding', switch: 'planned changes',
  waiting: 'waiting for workers', lost_steps: 'steps made again', no_driver: 'without a driver', ending: 'ending',
};
const SEVERITIES = ['error', 'warning', 'info', 'debug'];
/* The kinds of events that are the reason for a change, docs/events.md has all kinds: what makes members recover, what lets a
 * worker be launched on the host that the event names, and what makes workers leave. A list of hosts may do both. */
const LOSSES = ['worker_failed', 'host_lost'], GAINS = ['host_joined', 'drain_ended', 'cooldown_over', 'failure_forgotten'];
const LEAVES = ['drain_begun', 'host_left'], REASONS = [...LOSSES, ...GAINS, ...LEAVES, 'hosts_changed'];
const SHOWN_REASONS = 2, TAKEOVER_MS = 60000;
/* A speed is measured over at least SPEED_MS, so that a job has at most SPEEDS of them. */
const SPEED_MS = 10000, SPEEDS = 120, HOUR_S = 3600;
/* A job is told to be slower if it has lost this part of a speed that LEAST_SPEEDS measurements tell. */
const SLOWER = 0.2, LEAST_SPEEDS = 4, RECENT_S = 60;
/* EVERY_SLOT is the max_np of a job without an upper limit; live.c holds it to LIMIT_WORKERS. */
const SHOWN_WHYS = 4, SHOWN_SIZES = 6, EVERY_SLOT = 131072;

const job = { changes: new Map(), events: [], seen: 0, round: 0, decided: new Map(), reasons: [], ready: [], revoked: [], takeovers: [], listsAnew: false, marks: [], slots: new Map(), lost: new Map(), checkpoint: null, unwritten: null, last: null, heard: 0, clock: 0, still: null, driver: '', file: null, began: Infinity, control: false };
const chosen = { change: null, span: 0, severity: 2 };

/* ---- elements ---- */

const at = id => document.getElementById(id);

function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children);
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/* Fills an element, unless it shows the same already: a reader may be selecting text there. */
const shown = new Map();
function fill(id, key, children) {
  const text = JSON.stringify(key);
  if (shown.get(id) === text) return;
  shown.set(id, text);
  at(id).replaceChildren(...children());
}

/* ---- words ---- */

function span(seconds) {
  if (seconds === null) return '–';
  if (seconds === 0) return '0 s';
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

const offset = ms => Math.abs(ms) < 1 ? '0' : `${ms < 0 ? '−' : '+'}${span(Math.abs(ms) / 1000)}`;

/* A time ago, rounded, so that it does not change each second. */
function ago(seconds) {
  if (seconds < 10) return 'now';
  if (seconds < 60) return `${Math.floor(seconds / 10) * 10} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86400 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86400)} days ago`;
}

const clock = ms => new Date(ms).toLocaleTimeString([], { hour12: false });
const day = ms => new Date(ms).toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium', hour12: false });
/* When something was: in a file, which a reader may open at any time, as a time of day. */
const when = ms => !job.file ? ago((job.clock - ms) / 1000) : job.clock - ms < 72000000 ? clock(ms) : day(ms);
/* The commit "9.154" in words. */
const commitName = text => /^\d+\.\d+$/.test(text) ? `commit ${text.split('.')[1]} of round ${text.split('.')[0]}` : text;
const count = (n, one, many) => `${n} ${n === 1 ? one : many}`;

/* True: the job runs, but no commit has come for a while, and a worker is not heard. */
const standsStill = status => status.state === 'running' && status.newest_age_s > SILENT_MS / 1000 && status.lagging.some(one => one.silent);

function verdict(status) {
  const size = count(status.size, 'worker', 'workers');
  const fewer = status.size < status.np ? `, ${status.np - status.size} fewer than it began with` : '';
  switch (status.state) {
    case 'new': case 'gathering':
      return `The job waits for ${count(status.np, 'worker', 'workers')} to begin.`;
    case 'recovering':
      return status.enough ? 'Training stands still: the members recover.'
        : `Training stands still: fewer than ${count(status.min_np, 'worker', 'workers')} are left.`;
    case 'finishing': return 'A worker has finished: the job comes to its end.';
    case 'stopping': return 'The job is being stopped.';
    case 'over': return 'The job has ended.';
    case 'ended': return `The job has ended with code ${job.file.ended.code}: ${job.file.ended.text}.`;
    case 'orphaned': return 'No driver of this job lives: this is what the last one has written down.';
    default: if (standsStill(status))
      return `Training stands still: no commit for ${span(Math.floor(status.newest_age_s))}.`;
      return `${size} ${status.size === 1 ? 'trains' : 'train'}${fewer}.`;
  }
}

/* A worker that heartbeats show to be silent, as a frozen one, or behind the others. */
function lag(worker) {
  return worker.silent ? `${worker.worker} was not heard for ${span(worker.heard_s)}`
    : `${worker.worker} is behind the others, at commit ${worker.commit}`;
}

/* ---- parts of the page ---- */

/* How many commits a loss of all machines would cost. Those of different rounds are not counted through. */
function sinceThen(checkpoint, newest) {
  const [saved, now] = [checkpoint, newest].map(text => /^\d+\.\d+$/.test(text) ? text.split('.').map(Number) : null);
  return saved && now && saved[0] === now[0] && now[1] >= saved[1] ? count(now[1] - saved[1], 'commit since', 'commits since') : '';
}

/* The tile of the newest complete checkpoint. An event knows its time if an earlier driver has heard of it. After a failure
 * the newest one may be old. */
function checkpointFact(message) {
  const { commit, age_s: age, where } = message.checkpoint, heard = job.checkpoint, failed = job.unwritten;
  const alive = message.status.driver.pid !== null;
  if (alive && where === null) return ['checkpoint', 'none', 'there is no --checkpoint-dir'];
  const newest = commit !== null ? commit : alive || !heard ? null : heard.commit;
  const at = age !== null ? job.clock - age * 1000 : heard && heard.commit === newest ? heard.at : null;
  const rest = [newest && commitName(newest), sinceThen(newest, message.status.newest), where && `in ${where}`, failed && `the last attempt failed ${when(failed)}`];
  return ['checkpoint', !newest ? (alive ? 'none yet' : '–') : at !== null ? when(at) : 'complete',
    newest || alive || failed ? rest.filter(Boolean).join(', ') : 'no event tells of one'];
}

/* Why no more workers train, of a job that has a most: what each host says, or how many slots there are; a line for each. */
function whyFewer({ status, hosts }) {
  const most = status.max_np < EVERY_SLOT ? status.max_np : status.np;
  if (status.size >= most || !['running', 'preparing', 'pending', 'recovering', 'gathering'].includes(status.state)) return [];
  const whys = hosts.hosts.filter(host => host.why).map(host => `${host.name}: ${host.why}`);
  const slots = hosts.hosts.reduce((sum, host) => sum + (host.listed ? host.slots : 0), 0), rest = whys.length - SHOWN_WHYS;
  if (slots < most) whys.unshift(`${count(slots, 'slot is', 'slots are')} listed`);
  return whys.length ? [`Why not ${most}: `, ...whys.slice(0, SHOWN_WHYS), ...(rest > 0 ? [`and ${count(rest, 'host', 'hosts')} more`] : [])] : [];
}

/* Which host has most of the failures of workers. */
function whereFailed(failures, all) {
  const [worst, next] = [...failures].sort((a, b) => b.count - a.count);
  if (!worst) return '';
  if (!next) return `${all > 1 ? 'all ' : ''}on ${worst.host}`;
  return worst.count > next.count ? `${worst.count} of them on ${worst.host}` : `at most ${worst.count} on one host`;
}

/* The time of workers in which they did not train, but for the end of the job. */
const lostTime = goodput => Object.keys(USES).reduce((sum, use) =>
  sum + (['training', 'ending'].includes(use) || !goodput[use] ? 0 : goodput[use].worker_s), 0);

function showHead(message) {
  const status = message.status;
  document.title = `${status.size} · ${status.job}`;
  at('job').textContent = status.job;
  at('state').textContent = status.state;
  at('verdict').textContent = verdict(status);
  at('verdict').className = standsStill(status) ? 'bad' : '';
  const fails = status.fails_in_s === null ? '' : `It fails in ${span(status.fails_in_s)} unless workers come`;
  const kept = status.kept ? `${count(status.kept, 'worker', 'workers')} must leave, but fewer than ${status.min_np} would be left` : '';
  const waits = [status.waiting_for && `It waits for ${status.waiting_for}`, fails, kept, ...status.lagging.slice(0, 3).map(lag)].filter(Boolean).join('; ');
  const fewer = whyFewer(message);
  at('waits').textContent = waits || (status.state === 'running' && !fewer.length ? 'Nothing is waited for.' : '');
  at('slower').textContent = slower(message);
  fill('fewer', fewer, () => fewer.map(line => make('span', '', line)));
  const failed = status.failures.reduce((sum, one) => sum + one.count, 0);
  const most = status.max_np < EVERY_SLOT ? `, at most ${status.max_np}` : '';
  const rate = status.commits_per_s;
  const facts = [
    [status.state === 'ended' ? 'workers at the end' : 'workers', status.size, `at least ${status.min_np}${most}`],
    ['goodput', status.goodput.part === null ? '–' : `${(status.goodput.part * 100).toFixed(1)} %`,
      `${span(lostTime(status.goodput))} of workers’ time lost`],
    ['commits/s', rate === null ? '–' : rate.toFixed(rate < 10 ? 1 : 0),
      status.newest ? `newest: ${commitName(status.newest)}, ${status.newest_age_s < 3 ? 'now' : `${span(Math.floor(status.newest_age_s))} ago`}` : ''],
    ['round', status.round, status.round ? `from ${commitName(status.commit)}` : ''],
    checkpointFact(message),
    ['hosts', status.hosts.used, status.driver.pid === null ? '' : `of ${status.hosts.listed} listed`],
    ['failures of workers', failed, whereFailed(status.failures, failed)],
    ['driver', status.driver.term, status.driver.for_s === null ? ''
      : `since ${clock(job.clock - status.driver.for_s * 1000).slice(0, 5)}`],
  ];
  if (status.state === 'ended') facts.splice(5, 1), facts.splice(2, 1); /* hosts and commits/s are those of workers that train */
  fill('facts', facts, () => facts.map(([name, value, rest]) =>
    make('div', '', make('dt', '', name), make('dd', '', `${value} `, make('small', '', rest)))));
}

/* Why members recover: the loss for which their round was revoked, and the losses since then. A worker that failed before,
 * and was no member, is no reason. */
function whyRecovered(events, revoked) {
  const losses = events.filter(event => LOSSES.includes(event.kind));
  if (!revoked.length) return losses.length ? losses : events;
  const lost = losses.filter(event => revoked.some(by => event.seen > by.seen ||
    event.host === by.host && (event.incarnation === undefined || event.incarnation === by.incarnation)));
  const others = events.filter(event => !losses.includes(event));
  return lost.length ? lost : others.length ? others : revoked;
}

/* Why workers join: what has happened to the hosts or slots of those that became ready. A list of hosts is the reason for the
 * others. */
function whyMore(events, ready) {
  const fits = (event, one) => event.host === one.host && (event.slot === undefined || event.slot === one.slot);
  const gains = events.filter(event => GAINS.includes(event.kind) && (!ready.length || ready.some(one => fits(event, one))));
  const listed = !ready.length || ready.some(one => !gains.some(event => fits(event, one)));
  return events.filter(event => gains.includes(event) || listed && event.kind === 'hosts_changed');
}

/* Why members leave. A drain of a host without workers is no reason, and a drain that explains all who leave is the only one. A
 * release before `size` was told does not say how many a drain lets leave. */
function whyFewerTrain(events, change) {
  const drains = events.filter(event => event.kind === 'drain_begun' && event.size);
  if (drains.length && drains.reduce((sum, event) => sum + event.size, 0) >= change.from - change.to) return drains;
  const reasons = events.filter(event => drains.includes(event) || ['host_left', 'hosts_changed'].includes(event.kind));
  return reasons.length ? reasons : events.filter(event => LEAVES.includes(event.kind));
}

/* Why a change came: what happened after the change before it was decided on, and before this one was. A change that has no such
 * reason comes from a driver that took the job over, or from a worker that became ready. Of a round that the page has not
 * seen the events, it knows no reason. */
function reasonFor(change, former) {
  if (change.cause === 'first') return 'the first round';
  const since = former ? former.round : change.round - 1, after = job.decided.get(since), before = job.decided.get(change.round);
  const within = event => (after === undefined ? event.round >= since : event.seen > after) &&
    (before === undefined ? event.round < change.round : event.seen < before);
  const events = job.reasons.filter(within), ready = job.ready.filter(within), calm = events.filter(event => !LOSSES.includes(event.kind));
  const reasons = change.cause === 'recovery' ? whyRecovered(events, job.revoked.filter(within))
    : change.cause !== 'switch' ? events : change.to > change.from ? whyMore(calm, ready) : whyFewerTrain(calm, change);
  const takeovers = job.takeovers.filter(within).filter(event => !reasons.length || change.end - event.at < TAKEOVER_MS).slice(-1);
  const all = reasons.length ? [...reasons.slice(0, SHOWN_REASONS - takeovers.length), ...takeovers, ...reasons.slice(SHOWN_REASONS - takeovers.length)]
    : [...takeovers, ...(change.to < change.from ? [] : ready)];
  const rest = all.length - SHOWN_REASONS;
  return all.slice(0, SHOWN_REASONS).map(event => event.text).join('; ') + (rest > 0 ? `; and ${rest} more` : '');
}

/* Changes in the order of time; those of an earlier driver are kept. */
const changes = () => [...job.changes.values()].sort((a, b) => a.end - b.end);

function showChart(status) {
  const list = changes(), now = job.clock, width = Math.max(at('chart').clientWidth, 280), height = 190;
  const began = Math.min(job.began, now - status.driver.for_s * 1000, list.length ? list[0].end - list[0].pause : now);
  const from = Math.max(chosen.span ? now - chosen.span * 1000 : -Infinity, Math.min(began, now - 5000));
  const left = 34, right = width - 8, top = 10, bottom = height - 24;
  const x = t => left + (right - left) * (Math.min(Math.max(t, from), now) - from) / (now - from || 1);
  const most = Math.max(status.size, status.np, ...list.map(change => Math.max(change.from, change.to)), 1);
  const y = n => bottom - (bottom - top) * n / most;
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `workers over time, now ${status.size}` });

  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000].find(s => most / s <= 5) || most;
  for (let n = 0; n <= most; n += step) {
    svg.append(draw('line', { class: 'grid', x1: left, x2: right, y1: y(n), y2: y(n) }));
    svg.append(draw('text', { x: left - 6, y: y(n) + 4, 'text-anchor': 'end' }, n));
  }
  const ticks = width < 500 ? 3 : 6;
  for (let i = 0; i <= ticks; i++) {
    const t = from + (now - from) * i / ticks, anchor = i === 0 ? 'start' : i === ticks ? 'end' : 'middle';
    svg.append(draw('text', { x: x(t), y: height - 6, 'text-anchor': anchor },
      now - from > 7200000 ? clock(t).slice(0, 5) : clock(t)));
  }
  if (status.min_np > 1)
    svg.append(draw('line', { class: 'least', x1: left, x2: right, y1: y(status.min_np), y2: y(status.min_np) }));

  let size = list.length ? list[0].from : status.size, path = `M${x(Math.max(from, began))} ${y(size)}`;
  for (const change of list) {
    path += `H${x(change.end)}V${y(change.to)}`;
    size = change.to;
  }
  path += status.state === 'ended' ? `H${x(now)}V${y(0)}` : `H${x(now)}`;
  svg.append(draw('path', { class: 'under', d: `${path}V${bottom}H${x(Math.max(from, began))}Z` }), draw('path', { class: 'size', d: path }));

  for (const change of list) {
    if (change.end < from) continue;
    const start = x(change.end - change.pause), wide = Math.max(x(change.end) - start, 3);
    const open = change.round === opened() ? ' open' : '';
    const band = draw('rect', { class: `pause ${change.cause}${open}`, x: start, y: top, width: wide, height: bottom - top, 'data-round': change.round });
    band.append(draw('title', {}, `round ${change.round}: ${change.cause}, ${change.from} → ${change.to} workers, ${span(change.pause / 1000)}`));
    band.addEventListener('click', () => { chosen.change = change.round; show(); });
    svg.append(band);
  }
  if (job.still !== null)
    svg.append(draw('rect', { class: 'pause recovery', x: x(job.still), y: top, width: Math.max(x(now) - x(job.still), 3), height: bottom - top }));
  at('chart').replaceChildren(svg);
  const sizes = timeOfSizes(list, now);
  fill('sizes', sizes, () => [sizes]);
  fill('key', status.min_np > 1, () => [...CAUSES.map(cause => make('span', '', make('i', `dot ${cause}`), `pause: ${cause}`)),
    status.min_np > 1 ? make('span', '', make('i', 'dash'), 'the least that the job needs') : '']);
}

/* For how long how many workers trained, with the pauses before, so that a job with one too few for long is seen at once. */
function timeOfSizes(list, now) {
  const times = new Map();
  for (const [i, change] of list.entries())
    times.set(change.to, (times.get(change.to) || 0) + (i + 1 < list.length ? list[i + 1].end : now) - change.end);
  const sizes = [...times].sort((a, b) => b[0] - a[0]), rest = sizes.length - SHOWN_SIZES;
  if (sizes.length < 2) return '';
  return sizes.slice(0, SHOWN_SIZES).map(([size, ms], i) => `${i ? size : count(size, 'worker', 'workers')} for ${span(Math.floor(ms / 1000))}`).join(', ') +
    (rest > 0 ? `; and ${count(rest, 'smaller size', 'smaller sizes')}` : '');
}

/* The round of the change that is shown phase by phase: the chosen one, or the newest; 0: none is. */
const opened = () => chosen.change === null ? Math.max(0, ...job.changes.keys()) : chosen.change;

/*
 * The phases of a change. Each is that of the member that needed longest, and members need not be in the same phase. So
 * bars follow one on the other only while they fit into the pause; else each begins at its beginning.
 */
function detail(change) {
  const aside = change.cause === 'switch', pause = change.pause * 1000;
  const met = PHASES.filter(([, field]) => field !== 'detect_us' || change.detect_us);
  const within = met.filter(([, field]) => !aside || field !== 'agree_us');
  const sum = within.reduce((all, [, field]) => all + change[field], 0), follow = sum <= pause;
  const whole = Math.max(pause, ...within.map(([, field]) => change[field]), 1), box = make('div', 'detail');
  const phases = met.map(([name, field, what]) => [name, change[field], what]);
  if (aside) phases[0][2] = 'beside the training, which goes on';
  if (follow && pause - sum > pause / 20) phases.push(['rest', pause - sum, 'no member has measured this part']);
  let before = 0;
  for (const [name, us, what] of phases) {
    const bar = make('i', change.cause), beside = aside && name === 'agree';
    bar.style.left = `${100 * before / whole}%`;
    bar.style.width = `${100 * us / whole}%`;
    if (follow && !beside) before += us;
    box.append(make('div', 'phase', make('span', '', name), make('span', 'right', span(us / 1e6)),
      make('div', 'track', us && !beside ? bar : ''), make('span', 'faint what', what)));
  }
  box.append(make('p', 'faint', 'Each phase is that of the member that needed longest.'
    + (aside ? ' Training goes on while a switch is agreed on.' : '')
    + (follow ? '' : ` Members were in different phases at the same time, so the phases are together longer than the pause of ${span(pause / 1e6)}.`)));
  const former = Math.max(0, ...changes().map(other => other.end).filter(end => end < change.end));
  const start = Math.max(former, change.end - Math.max(change.pause, (sum + change.agree_us) / 1000) - 2000);
  const said = job.events.filter(event => event.at > start && event.at <= change.end + 50 && event.text);
  const list = make('ol', 'said');
  for (const event of said.slice(0, 30))
    list.append(make('li', '', make('span', 'faint right', offset(event.at - change.end)),
      make('span', event.severity === 'warning' ? 'warn' : event.severity === 'error' ? 'bad' : '', event.text)));
  box.append(said.length ? make('p', 'faint', `What the driver did, and whom it waited for; 0 is the moment when all trained${change.cause === 'first' ? '' : ' again'}:`)
    : make('p', 'faint', 'The events of that time are not here; events.log has them.'), list);
  return box;
}

/* A value in few digits. One that is no number comes as a text. */
const digits = value => typeof value === 'number' ? String(+value.toPrecision(5)) : value;

/* A line through the points, [age, value], up to now. A value that is no number is a gap. fromZero: the lower edge is 0. */
function spark(points, fromZero) {
  const numbers = points.map(point => point[1]).filter(value => typeof value === 'number');
  const low = Math.min(fromZero ? 0 : Infinity, ...numbers), high = Math.max(...numbers), oldest = Math.max(points[0][0], 1);
  const x = age => (200 - 200 * age / oldest).toFixed(1), y = value => high > low ? (38 - 36 * (value / 2 - low / 2) / (high / 2 - low / 2)).toFixed(1) : 20;
  const svg = draw('svg', { viewBox: '0 0 200 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': numbers.length ? `from ${digits(low)} to ${digits(high)}` : 'no numbers' });
  let path = '', gap = true;
  for (const [age, value] of points) {
    if (typeof value === 'number') path += `${gap ? 'M' : 'L'}${x(age)} ${y(value)}`;
    gap = typeof value !== 'number';
  }
  svg.append(draw('path', { class: 'size', d: gap ? path : `${path}H200` }));
  if (numbers.length) svg.append(draw('title', {}, `from ${digits(low)} to ${digits(high)} in ${span(points[0][0])}`));
  return svg;
}

/* In words what the line shows: its ends, and what lies beyond them. */
function trend(points) {
  const numbers = points.filter(point => typeof point[1] === 'number'), values = numbers.map(point => point[1]), short = value => +value.toPrecision(3);
  if (!numbers.length) return make('small', 'faint', '');
  const [first, last, low, high] = [values[0], values[values.length - 1], Math.min(...values), Math.max(...values)];
  const beyond = [low < Math.min(first, last) && `least ${short(low)}`, high > Math.max(first, last) && `most ${short(high)}`].filter(Boolean).join(', ');
  return make('small', 'faint', `${short(first)} → ${short(last)} in ${span(numbers[0][0])}${beyond && `; ${beyond}`}`);
}

/* Commits in a second over time, as points [age, commits/s]: from the commits that the reported values and the
 * checkpoints name. A speed is that of one round, so pauses do not count. */
function speeds(message) {
  const marks = job.marks.concat(...message.series.map(one => one.points.filter(point => point[2])
    .map(([age, , commit]) => [job.clock - age * 1000, commit])));
  if (message.status.newest) marks.push([job.clock - message.status.newest_age_s * 1000, message.status.newest]);
  marks.sort((a, b) => a[0] - b[0]);
  const least = marks.length ? Math.max(SPEED_MS, (job.clock - marks[0][0]) / SPEEDS) : 0, points = [];
  let from = null;
  for (const [at, commit] of marks) {
    const [round, place] = commit.split('.').map(Number);
    if (from && from.round === round && at - from.at < least) continue;
    if (from && from.round === round) points.push([Math.max(0, (job.clock - at) / 1000), Math.max(0, place - from.place) * 1000 / (at - from.at)]);
    from = { at, round, place };
  }
  return points;
}

/* A job that has become slower: its speed now beside that of most of the hour before. More workers may make fewer commits. Just
 * after a change the driver knows no speed yet: the last one counts. */
function slower(message) {
  const points = speeds(message), last = points[points.length - 1];
  const rate = message.status.commits_per_s !== null ? message.status.commits_per_s : last && last[0] < RECENT_S ? last[1] : null;
  const before = points.filter(([age]) => age > SPEED_MS / 1000 && age < HOUR_S).map(point => point[1]);
  const usual = before.sort((a, b) => a - b)[Math.floor(before.length / 2)];
  if (message.status.state !== 'running' || rate === null || before.length < LEAST_SPEEDS || rate > usual * (1 - SLOWER)) return '';
  const short = value => value.toFixed(value < 10 ? 1 : 0);
  return `It is ${Math.round((1 - rate / usual) * 100)} % slower than most of the time before: ${short(rate)} commits/s, where it made ${short(usual)}.`;
}

/* The tile of the speed: how fast it is now, and how fast it was an hour ago, or at first. */
function speedTile(message) {
  const points = speeds(message), rate = message.status.commits_per_s;
  if (points.length < 2) return [];
  const before = points.reduce((best, point) => Math.abs(point[0] - HOUR_S) < Math.abs(best[0] - HOUR_S) ? point : best);
  const short = value => value.toFixed(value < 10 ? 1 : 0);
  if (rate !== null) points.push([0, rate]);
  return [['commits/s', short(points[points.length - 1][1]),
    `${short(before[1])} ${Math.abs(before[0] - HOUR_S) < HOUR_S / 4 ? 'an hour ago' : `at ${clock(job.clock - before[0] * 1000)}`}`, points, true /* the line begins at 0 */]];
}

/* The speed, and the newest value of each name that the program has reported, with their values over time. */
function showValues(message) {
  const series = new Map(message.series.map(one => [one.name, one.points]));
  const tiles = speedTile(message).concat(message.status.reported.map(({ name, value, commit, age_s: age }) => [name, digits(value),
    [commit && `at ${commitName(commit)}`, age < 10 ? '' : ago(age)].filter(Boolean).join(', '), series.get(name) || []]));
  at('of-values').hidden = !tiles.length;
  fill('values', tiles.map(([name, value, rest, points]) => [name, value, rest, points.length, points.map(point => point[1])]), () =>
    tiles.map(([name, value, rest, points, fromZero]) => make('div', 'value', make('div', 'faint', name),
      make('b', '', value), make('small', 'faint', rest), ...(points.length > 1 ? [spark(points, fromZero), trend(points)] : []))));
}

function showChanges() {
  const list = changes().reverse(), open = opened(), newest = job.events.length;
  const key = [list.map(change => [change.round, when(change.end)]), open,
    job.changes.has(open) && job.clock - job.changes.get(open).end < 5000 ? newest : 0];
  fill('changes', key, () => {
    if (!list.length) return [make('p', 'faint', 'There was no round yet in which all members trained.')];
    const rows = make('div', 'rows', make('div', 'line head', ...['round', 'cause', 'size', 'why', 'when', 'pause'].map((name, i) =>
      make('span', i > 3 ? 'right' : '', name))));
    for (const [i, change] of list.slice(0, SHOWN_CHANGES).entries()) {
      const line = make('button', 'line', make('span', '', change.round),
        make('span', 'nowrap', make('i', `dot ${change.cause}`), change.cause),
        make('span', '', `${change.from} → ${change.to}`), make('span', 'because', reasonFor(change, list[i + 1])),
        make('span', 'right faint', when(change.end)),
        make('span', 'right', span(change.pause / 1000)));
      line.setAttribute('aria-expanded', change.round === open);
      line.addEventListener('click', () => { chosen.change = change.round === open ? 0 : change.round; show(); });
      rows.append(make('div', 'row', line, change.round === open ? detail(change) : ''));
    }
    const rest = list.length - SHOWN_CHANGES;
    return [rows, rest > 0 ? make('p', 'faint', `${count(rest, 'older change is', 'older changes are')} only in the chart.`) : ''];
  });
}

function showGoodput(goodput) {
  const uses = Object.keys(USES).filter(use => goodput[use] && goodput[use].worker_s >= 0.001);
  const whole = uses.reduce((sum, use) => sum + goodput[use].worker_s, 0);
  const parts = uses.map(use => [use, (100 * goodput[use].worker_s / whole).toFixed(1), span(goodput[use].worker_s)]);
  fill('goodput', parts, () => {
    if (!parts.length) return [make('p', 'faint', 'No worker has used any time yet.')];
    const bar = make('div', 'bar');
    for (const [use, part] of parts) {
      bar.append(make('i', use));
      bar.lastChild.style.width = `${part}%`;
    }
    return [bar, make('div', 'uses', ...parts.map(([use, part, time]) =>
      make('div', '', make('i', `dot ${use}`), USES[use], make('b', '', part === '0.0' ? '< 0.1 %' : `${part} %`), make('span', 'faint', time))))];
  });
}

function worker(of) {
  const kind = of.lags ? 'lags' : of.trains ? 'trains' : ['doomed', 'ended', 'leaving', 'revoked'].includes(of.state) ? 'gone'
    : ['member', 'ready', 'recovered', 'finished'].includes(of.state) ? 'there' : '';
  const mark = make('span', `worker ${kind}`);
  mark.title = `slot ${of.slot}: ${of.rank === null ? 'no rank' : `rank ${of.rank}`}, ${of.state}${of.trains ? ', trains' : ''}${of.lags ? ', silent or behind' : ''}`;
  return mark;
}

function showHosts(message) {
  const failures = new Map(message.status.failures.map(one => [one.host, one.count]));
  const lags = new Set(message.status.lagging.map(one => one.worker));
  const rows = message.hosts.hosts.map(host => {
    const heard = host.heard_s === null ? '' : host.heard_s > 5 ? `, not heard for ${Math.floor(host.heard_s / 5) * 5} s` : ', heard now';
    const slow = message.status.lagging.filter(one => one.worker.startsWith(`${host.name}:`)).slice(0, 3).map(lag).join('; ');
    const state = host.draining ? (host.workers.length ? 'being drained' : 'drained') : message.hosts.orphaned ? 'not known' : !host.listed ? 'not listed' : `agent ${host.agent}${heard}`;
    const failed = failures.get(host.name), last = job.lost.get(host.name);
    const lost = !failed && !last ? '' : [failed ? count(failed, 'failure', 'failures') : '', last ? `last ${when(last.at)}: ${last.text}` : '']
      .filter(Boolean).join(', ');
    return { name: host.name, state, lost, slow, good: host.agent === 'there' && host.listed && !host.draining && !(host.heard_s > 5), drained: host.draining, why: host.why, slots: message.hosts.orphaned ? host.used : `${host.used} of ${host.slots}`,
      workers: host.workers.map(({ slot, rank, state: now, trains }) => ({ slot, rank, state: now, trains, lags: lags.has(`${host.name}:${slot}`) })) };
  });
  at('of-hosts').hidden = message.status.state === 'ended';
  fill('hosts', [rows, message.hosts_left_out, job.control], () => {
    if (!rows.length) return [make('p', 'faint', 'Discovery has listed no host yet.')];
    const table = make('div', 'rows hosts', make('div', 'line head', ...['host', 'state', 'slots', 'workers'].map(name => make('span', '', name))));
    for (const host of rows) {
      const marks = host.workers.slice(0, SHOWN_WORKERS).map(worker);
      if (host.workers.length > SHOWN_WORKERS) marks.push(`and ${host.workers.length - SHOWN_WORKERS} more`);
      table.append(make('div', 'row', make('div', 'line', make('span', '', host.name),
        make('span', host.good ? 'faint' : 'warn', host.state,
          job.control ? hostAct(host.name, host.drained, host.workers.length) : ''), make('span', 'faint', host.slots),
        make('span', '', ...marks), host.slow ? make('span', 'why warn', host.slow) : '', host.why ? make('span', 'why', host.why) : '', host.lost ? make('span', 'why', host.lost) : '')));
    }
    const key = make('p', 'key', ...[['trains', 'trains'], ['there', 'ready, not training'], ['', 'starts'], ['lags', 'silent or behind'], ['gone', 'leaves, or is lost']]
      .map(([kind, name]) => make('span', '', make('span', `worker ${kind}`), name)));
    const rest = message.hosts_left_out, name = message.status.job;
    const how = message.hosts.orphaned ? '' : job.control
      ? make('p', 'faint', 'The button drain lets the workers of a host leave without loss; undrain lets the host be used again.')
      : make('p', 'faint', 'To take a host out without loss: ', make('code', '', `hvd-elastic drain HOST ${name}`), '; to use it again: ',
        make('code', '', `hvd-elastic undrain HOST ${name}`), '.');
    return [table, key, how, rest ? make('p', 'faint', `${count(rest, 'host is', 'hosts are')} not shown here; hvd-elastic hosts lists all.`) : ''];
  });
}

function showBlacklist(message) {
  const rows = message.blacklist.blacklist.map(held => [held.slot === null ? held.host : `${held.host}:${held.slot}`,
    count(held.failures, 'failure', 'failures'),
    message.status.state === 'ended' ? '' : held.usable || held.left_s === 0 ? 'usable' : `not usable ${held.left_s === null ? 'until it is cleared' : `for ${span(Math.ceil(held.left_s / 5) * 5)}`}`,
    held.reason]);
  fill('blacklist', [rows, message.blacklist_left_out], () => {
    if (!rows.length) return [make('p', 'faint', 'No failure is counted against any host.')];
    const rest = message.blacklist_left_out;
    return [make('div', 'rows held', make('div', 'line head', ...['host or slot', 'counted', 'now', 'last failure'].map(name => make('span', '', name))),
      ...rows.map(row => make('div', 'row', make('div', 'line', ...row.map((cell, i) => make('span', i ? 'faint' : '', cell)))))),
    rest ? make('p', 'faint', `${count(rest, 'entry is', 'entries are')} not shown here; hvd-elastic blacklist lists all.`) : ''];
  });
}

function showEvents() {
  const list = job.events.filter(event => SEVERITIES.indexOf(event.severity) <= chosen.severity).slice(-SHOWN_EVENTS).reverse();
  fill('events', [chosen.severity, list.length ? list[0].key : 0, list.length], () => list.length ? list.map(event => {
    if (event.left) return make('li', 'gap', `${count(event.left, 'event is', 'events are')} not shown here; events.log has all.`);
    const time = make('span', 'faint', clock(event.at));
    time.title = day(event.at);
    return make('li', event.severity, time, make('span', 'faint', event.severity), make('span', '', event.text));
  }) : [make('li', 'gap', 'None of this severity.')]);
}

/* How the events are read, and where all of them are. */
function showLog(status) {
  fill('log', [status.driver.state_dir, status.job], () => [
    'HOST:SLOT#NUMBER is a worker: the slots of a host count from 0, the number counts all workers that the job has launched. All events are in ',
    make('code', '', `${status.driver.state_dir}/events.log`), '.']);
}

function choose(id, options, get, set) {
  at(id).replaceChildren(...options.map(([name, value]) => {
    const button = make('button', '', name);
    button.addEventListener('click', () => { set(value); choose(id, options, get, set); show(); });
    button.setAttribute('aria-pressed', get() === value);
    return button;
  }));
}

function show() {
  if (!job.last) return;
  showHead(job.last);
  showChart(job.last.status);
  showValues(job.last);
  showChanges();
  showGoodput(job.last.status.goodput);
  showHosts(job.last);
  showBlacklist(job.last);
  showEvents();
  showLog(job.last.status);
}

/* ---- what is asked of the driver (--page-control) ---- */

const token = () => new URLSearchParams(location.search).get('token') || '';

/* Asks the reader first. The answer of the driver is shown where the question was; each question is sent once. */
function confirmAct(what, path, body, yes) {
  const dialog = at('ask'), button = at('yes');
  at('asked').textContent = what;
  at('answer').textContent = '';
  at('no').textContent = 'cancel';
  button.textContent = yes;
  button.hidden = button.disabled = false;
  at('no').onclick = () => dialog.close();
  button.onclick = async () => {
    button.disabled = true;
    at('answer').textContent = 'The driver was asked …';
    try {
      const answer = await fetch(path, { method: 'POST', body, headers: { Authorization: `Bearer ${token()}` } });
      at('answer').textContent = `${answer.ok ? '' : `Refused (${answer.status}): `}${await answer.text()}`;
    } catch {
      at('answer').textContent = 'No answer has come: the driver has ended, or cannot be reached. The page shows what the job does.';
    }
    button.hidden = true;
    at('no').textContent = 'close';
  };
  dialog.showModal();
}

function hostAct(name, drained, workers) {
  const button = make('button', 'act', drained ? 'undrain …' : 'drain …');
  const what = drained ? `Use ${name} again?`
    : `Drain ${name}? Its ${count(workers, 'worker leaves', 'workers leave')} at the next check, and none is launched there until it is undrained.`;
  button.addEventListener('click', () => confirmAct(what, drained ? 'undrain' : 'drain', name, drained ? 'undrain' : 'drain'));
  return button;
}

at('stop').addEventListener('click', () => confirmAct(
  'Stop the job? All its workers end. With --checkpoint-dir a checkpoint is written first.', 'stop', '', 'stop the job'));

/* ---- what comes from the driver ---- */

/* Keeps what an event tells beyond its line: the reason for a change, a failure of a host, a checkpoint. `seen` is the order of
 * events over all drivers; a change is decided on when its round is prepared, or begins without that. */
function keepFacts(event) {
  const { kind, host, incarnation, size, text } = event, seen = ++job.seen;
  job.round = event.round === undefined ? job.round : event.round;
  const reason = { seen, round: job.round, kind, host, slot: event.slot, incarnation, size, text };
  if (['round_prepared', 'round_begun'].includes(kind) && !job.decided.has(event.round)) job.decided.set(event.round, seen);
  if (job.decided.size > KEPT_EVENTS) job.decided.delete(job.decided.keys().next().value);
  if (kind === 'round_revoked') job.revoked.push({ ...reason, text: event.cause || text });
  const slot = `${event.host}:${event.slot}`, worker = event.incarnation !== undefined && event.slot !== undefined;
  if (event.kind === 'checkpoint_complete' && event.commit !== undefined) {
    job.checkpoint = { commit: event.commit, at: event.at };
    job.marks.push([event.at, event.commit]);
  }
  if (['checkpoint_complete', 'checkpoint_failed'].includes(kind)) job.unwritten = kind === 'checkpoint_failed' ? event.at : null;
  if (['worker_failed', 'host_lost'].includes(event.kind) && event.host !== undefined) job.lost.set(event.host, { text: event.text, at: event.at });
  /* To a driver that takes over the whole first list of hosts is new. */
  if (event.kind === 'driver_started' && event.severity !== 'debug') {
    job.takeovers.push({ ...reason, at: event.at, text: 'a new driver took over' });
    job.listsAnew = true;
  }
  if (event.kind === 'hosts_changed' && event.severity !== 'debug' && job.listsAnew) job.listsAnew = false;
  else if (REASONS.includes(event.kind) && event.severity !== 'debug') job.reasons.push(reason);
  if (event.kind === 'worker_ready' && worker)
    job.ready.push({ ...reason, text: `${slot} is ${job.slots.has(slot) && job.slots.get(slot) !== event.incarnation ? 'back' : 'ready'}` });
  if (worker && event.kind !== 'worker_launched') job.slots.set(slot, event.incarnation);
  for (const list of [job.reasons, job.ready, job.revoked, job.takeovers, job.marks]) list.splice(0, Math.max(0, list.length - KEPT_EVENTS));
}

/* Keeps the events that are new. A new driver counts from 1 again. */
function keepEvents(events, driver) {
  let number = 0;
  if (job.driver === driver)
    number = job.events.length ? job.events[job.events.length - 1].number : 0;
  for (const event of events) {
    if (event.number <= number) continue;
    if (number && event.number > number + 1)
      job.events.push({ left: event.number - number - 1, severity: 'error', number: event.number - 1, key: `${driver} gap ${event.number}` });
    job.events.push({ ...event, at: Date.parse(event.time), key: `${driver} ${event.number}` });
    keepFacts(job.events[job.events.length - 1]);
    number = event.number;
  }
  job.driver = driver;
  job.events.splice(0, Math.max(0, job.events.length - KEPT_EVENTS));
}

function take(message) {
  const status = message.status;
  job.last = message;
  job.heard = Date.now();
  job.clock = Date.parse(message.now);
  for (const change of message.changes.changes)
    if (!job.changes.has(change.round))
      job.changes.set(change.round, { ...change, end: job.clock - change.ago_s * 1000, pause: change.pause_us / 1000 });
  if (status.state !== 'recovering') job.still = null;
  else if (job.still === null) job.still = job.clock;
  keepEvents(message.events, `${status.driver.term} ${status.driver.pid}`);
  show();
}

function watch() {
  const source = new EventSource(`live${location.search}`);
  source.onmessage = message => take(JSON.parse(message.data));
  source.addEventListener('control', () => {
    job.control = true;
    at('acts').hidden = false;
    show();
  });
  /* A browser comes back by itself, but for an answer that is no stream: refused, or too many viewers. */
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(watch, 5000);
  };
}

function showLink() {
  const silent = Date.now() - job.heard, over = job.last && ['stopping', 'finishing', 'over'].includes(job.last.status.state);
  const link = at('link');
  at('verdict').className = silent < SILENT_MS ? '' : 'faint';
  if (job.heard && silent < SILENT_MS) {
    link.textContent = `live · ${clock(job.clock)}`;
    link.className = '';
  } else if (job.heard) {
    link.textContent = over ? 'The driver has ended: this is the last that it said.'
      : `no word from the driver for ${span(Math.floor(silent / 1000))}; this is the last that it said`;
    link.className = over ? '' : 'bad';
  } else {
    link.textContent = 'no word from the driver yet; it may serve as many viewers as it can';
  }
}

/* Shows the data of a file. Of the history the part counts that the driver has not in its message. */
function openFile(file) {
  const live = file.live, first = live.events.length ? live.events[0].time : '~', ended = live.status.state === 'ended';
  job.file = file;
  if (file.history.began) job.began = Date.parse(file.history.began);
  keepEvents(file.history.events.filter(event => event.time < first), 'file');
  take(live);
  for (const change of file.history.changes)
    if (!job.changes.has(change.round))
      job.changes.set(change.round, { ...change, end: Date.parse(change.ended), pause: change.pause_us / 1000 });
  at('link').textContent = ended ? `ended ${day(job.clock)}` : `as it was ${day(job.clock)}`;
  show();
}

choose('span', [['10 min', 600], ['1 h', 3600], ['all', 0]], () => chosen.span, value => { chosen.span = value; });
choose('severity', [['errors', 0], ['warnings', 1], ['info', 2], ['all', 3]], () => chosen.severity, value => { chosen.severity = value; });
addEventListener('resize', show);
if (at('data').textContent) {
  openFile(JSON.parse(at('data').textContent));
} else {
  setInterval(showLink, 1000);
  watch();
}
