// Draws what the server sends once a second, and history of the span that is chosen.
'use strict';
const HEIGHT = 180, LEFT = 44, BOTTOM = 20;
const query = location.search;
const find = id => document.getElementById(id);
// Seconds of a span and of its points, and the time axis: seconds between labels, their unit.
const SPANS = {
  '10m': { seconds: 600, step: 1, label: 120, unit: 60, name: 'min' },
  '24h': { seconds: 86400, step: 60, label: 14400, unit: 3600, name: 'h' },
  '30d': { seconds: 2592000, step: 1800, label: 432000, unit: 86400, name: 'd' },
};
const points = new Map();
// Flows in the table, until more are asked for.
let mostFlows = 20;
let latest = [], unseen = 'looking …', chosen = '', span = '10m', fetched = 0, now = 0;

function node(name, attributes, ...children) {
  const svg = ['svg', 'line', 'text', 'polyline', 'title'].includes(name);
  const made = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function rate(bps) {
  if (bps >= 1e9) return (bps / 1e9).toFixed(2) + ' Gbit/s';
  if (bps >= 1e6) return (bps / 1e6).toFixed(2) + ' Mbit/s';
  return (bps / 1e3).toFixed(0) + ' kbit/s';
}
const known = value => value ?? '–';
const ms = ns => ns == null ? null : (ns / 1e6).toFixed(ns < 1e7 ? 1 : 0) + ' ms';

// The end of an axis for values up to `most`: it and its half are short numbers.
function round(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return power * [1, 2, 3, 4, 5, 6, 8, 10].find(digit => digit * power >= most);
}

// Both ways over one time axis, in `unit` of the values. Limits are drawn where the values come near.
function chart(place, name, series, unit, limits = []) {
  // Letters are as large as elsewhere, whatever the width; few of them on a phone.
  const WIDTH = Math.max(280, place.clientWidth);
  const most = Math.max(0, ...series.flatMap(one => one.map(([, value]) => value)));
  const near = limits.filter(limit => limit && limit < 10 * most);
  const top = round(Math.max(most, ...near) / unit);
  const { seconds, step, label: each, unit: labelUnit, name: unitName } = SPANS[span];
  const end = now;
  const x = at => LEFT + (WIDTH - LEFT - 70) * Math.min(1, 1 - (end - at) / seconds);
  const y = value => (HEIGHT - BOTTOM) * (1 - value / unit / top) + 8;
  const made = node('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT + 10}`, role: 'img' }, node('title', {}, name));
  for (const part of [0, .5, 1]) {
    const at = y(top * unit * part);
    made.append(node('line', { class: 'grid', x1: LEFT, x2: WIDTH - 70, y1: at, y2: at }));
    const digits = Math.max(0, 1 - Math.floor(Math.log10(top)));
    made.append(node('text', { x: LEFT - 6, y: at + 4, 'text-anchor': 'end' }, part ? (top * part).toFixed(digits) : '0'));
  }
  for (let back = 0; back <= seconds; back += WIDTH < 500 ? 2 * each : each) {
    const label = back ? `−${back / labelUnit} ${unitName}` : 'now';
    made.append(node('text', { x: x(end - back), y: HEIGHT + 6, 'text-anchor': 'middle' }, label));
  }
  const ways = [['down', 'download'], ['up', 'upload']];
  limits.forEach((limit, way) => {
    if (!near.includes(limit)) return;
    const at = y(limit);
    made.append(node('line', { class: `limit ${ways[way][0]}`, x1: LEFT, x2: WIDTH - 70, y1: at, y2: at }));
  });
  const ends = series.map(one => one.length ? y(one[one.length - 1][1]) + 4 : 0);
  if (Math.abs(ends[0] - ends[1]) < 14) ends[0] < ends[1] ? (ends[0] -= 7, ends[1] += 7) : (ends[0] += 7, ends[1] -= 7);
  series.forEach((one, way) => {
    if (!one.length) return;
    // A gap in time is a gap in the line.
    const runs = [];
    one.forEach((point, index) => {
      if (!index || point[0] - one[index - 1][0] > 3 * step) runs.push([]);
      runs[runs.length - 1].push(point);
    });
    for (const run of runs) {
      const corners = run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
      // A single point is as long as what it stands for.
      if (run.length === 1) corners.push(`${x(run[0][0] + step).toFixed(1)},${y(run[0][1]).toFixed(1)}`);
      made.append(node('polyline', { class: ways[way][0], points: corners.join(' ') }));
    }
    made.append(node('text', { class: ways[way][0], x: WIDTH - 66, y: ends[way] }, ways[way][1]));
  });
  place.replaceChildren(made);
}

function table(place, heads, rows) {
  const row = (cells, kind) => node('tr', {}, ...cells.map(cell => node(kind, kind === 'th' ? { scope: 'col' } : {}, String(cell))));
  place.replaceChildren(node('thead', {}, row(heads, 'th')), node('tbody', {}, ...rows.map(cells => row(cells, 'td'))));
}

function endOf(flow, side) {
  const port = side === 'source' ? flow.sport : flow.dport;
  const address = flow[side];
  return port ? (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`) : address;
}

function draw() {
  const names = [...new Set([...latest.map(one => one.name), ...points.keys()])];
  if (!names.includes(chosen)) chosen = names[0] || '';
  const select = find('interface');
  if ([...select.options].map(option => option.value).join() !== names.join()) {
    select.replaceChildren(...names.map(name => node('option', { value: name }, name)));
  }
  select.value = chosen;
  const shown = latest.find(one => one.name === chosen);
  const nothing = { words: [unseen || 'nothing is shaped here now: `simnel up` begins'], lines: [], hosts: [], flows: [] };
  const view = shown ? shown.view : nothing;
  find('words').replaceChildren(...view.words.map(text => node('li', {}, text)));
  const kept = points.get(chosen) || [];
  const series = key => [0, 1].map(way => kept.map(point => [point.at_s, point[key][way]]));
  const ways = ['download', 'upload'];
  const limits = ways.map(way => (view.lines.find(line => line.direction === way) || {}).limit_bps);
  const told = ways.flatMap((way, index) => limits[index] ? [`${way} ${rate(limits[index])}`] : []);
  find('limits').textContent = told.length ? `Limits now, dotted where the rate comes near: ${told.join(', ')}` : '';
  chart(find('rate'), `Rate, ${span}`, series('rate_bps'), 1e6, limits);
  // No line is better than one that says 0 ms.
  const uncounted = ways.map(way => view.lines.some(line => line.direction === way && !line.delay));
  chart(find('delay'), `Added latency, ${span}`, series('p99_ns').map((one, way) => uncounted[way] ? [] : one), 1e6);
  const unknown = ways.filter((way, index) => uncounted[index]).join(' and ');
  find('uncounted').textContent = unknown && `Of the ${unknown}, Linux does not count how long packets wait; tiers tell the mean.`;
  find('untold').textContent = view.untold || '';
  table(find('hosts'), ['Host', 'Download', 'Upload', 'Flows', 'Queued packets', 'p99 wait', 'Drops', 'Marks'],
    view.hosts.map(host => [host.name || host.address, rate(host.download_bps), rate(host.upload_bps),
      `${host.active_flows} of ${host.flows}`, ...[host.backlog_packets, ms(host.sojourn_p99_ns), host.drops, host.marks].map(known)]));
  table(find('tiers'), ['Tier', 'Rate', 'Queued', 'Delay', 'Drops', 'Marks'],
    view.lines.flatMap(line => line.tiers.map(tier => [`${line.direction} ${tier.name}`, rate(tier.rate_bps),
      `${tier.backlog_bytes} B`, ms(tier.delay_ns), tier.drops, tier.marks])));
  const wanted = find('filter').value.toLowerCase();
  const rows = view.flows.map(flow => [`${flow.host || ''} ${endOf(flow, 'source')} → ${endOf(flow, 'destination')}`.trim(),
    rate(flow.rate_bps), { 6: 'TCP', 17: 'UDP', 1: 'ICMP', 58: 'ICMP' }[flow.protocol] || flow.protocol, ...[flow.backlog_packets, ms(flow.sojourn_ns), ms(flow.rtt_ns), flow.drops].map(known), flow.class || '']);
  const fit = rows.filter(cells => cells.join(' ').toLowerCase().includes(wanted));
  const listed = fit.slice(0, mostFlows);
  table(find('flows'), ['Flow', 'Rate', 'Protocol', 'Queued packets', 'Wait', 'RTT', 'Drops', 'Tier'], listed);
  // Beyond those that the server tells of, nothing is known but how many they are.
  const others = (wanted || !shown ? fit.length : shown.flow_count) - listed.length;
  const more = find('more');
  more.hidden = others <= 0;
  more.disabled = listed.length === fit.length;
  more.textContent = `and ${others} more`;
}

function take(message) {
  latest = message.interfaces;
  unseen = message.trouble;
  now = Math.max(now, ...latest.map(one => one.point.at_s));
  if (span === '10m') {
    for (const { name, point } of latest) {
      const kept = points.get(name) || [];
      if (!kept.length || kept[kept.length - 1].at_s < point.at_s) kept.push(point);
      points.set(name, kept.filter(one => one.at_s > now - 600));
    }
  } else if (Date.now() - fetched > 60000) load();
  find('state').textContent = 'live';
  draw();
}

async function load() {
  fetched = Date.now();
  const asked = span;
  const answer = await fetch(`api/v1/history${query}${query ? '&' : '?'}span=${asked}`);
  const past = await answer.json();
  if (!answer.ok) throw new Error(past.error);
  if (asked !== span) return;
  now = past.now_s;
  points.clear();
  for (const one of past.interfaces) points.set(one.name, one.points);
  find('change').hidden = !past.changes;
  find('trouble').textContent = past.trouble || '';
  draw();
}

async function begin() {
  try {
    await load();
  } catch (error) {
    find('state').textContent = error.message;
    return;
  }
  const events = new EventSource('api/v1/events' + query);
  events.onmessage = event => take(JSON.parse(event.data));
  events.onerror = () => { find('state').textContent = 'the connection is lost; trying again …'; };
}
find('spans').addEventListener('change', event => {
  span = event.target.value;
  history.replaceState(null, '', '#' + span);
  load().catch(error => { find('state').textContent = error.message; });
});
// The token goes in a header, which no page of others can send.
async function change(what) {
  const form = new FormData(find('wanted'));
  const wanted = { direction: form.get('direction'), words: form.get('words') };
  if (form.get('rate')) wanted.rate = form.get('rate');
  if (what === 'try') wanted.seconds = Number(form.get('seconds'));
  const answer = await fetch(`api/v1/interfaces/${encodeURIComponent(chosen)}/${what}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${new URLSearchParams(query).get('token')}` },
    body: JSON.stringify(what === 'keep' || what === 'undo' ? {} : wanted),
  });
  const done = await answer.json();
  if (!answer.ok) return done.error;
  if (what === 'keep') return 'kept';
  if (what === 'undo') return 'in force again: ' + done.undone.map(one => `${one.direction} ${one.after}`).join('; ');
  const [from, to] = what === 'try' ? ['before', 'now'] : ['now', 'then'];
  const said = `${from}: ${done.before}\n${to}: ${done.after}${done.warning ? '\nwarning: ' + done.warning : ''}`;
  if (what === 'try') return `${said}\nin force for ${wanted.seconds} s, unless it is kept`;
  return `${said}\n${done.effect ? done.effect.words : 'its effect is not known: ' + done.unknown}`;
}
find('wanted').addEventListener('submit', event => {
  event.preventDefault();
  const say = text => { find('changed').textContent = text; };
  change(event.submitter ? event.submitter.value : 'preview').then(say, error => say(error.message));
});
find('interface').addEventListener('change', event => { chosen = event.target.value; draw(); });
find('filter').addEventListener('input', draw);
find('more').addEventListener('click', () => { mostFlows = Infinity; draw(); });
if (query) document.querySelectorAll('footer a').forEach(link => { link.href += query; });
// A span in the address is found again.
if (location.hash.slice(1) in SPANS) span = location.hash.slice(1);
document.querySelector(`#spans input[value="${span}"]`).checked = true;
begin();
