// Draws what the server sends once a second. No state beyond the last ten minutes.
'use strict';
const KEPT = 600, WIDTH = 960, HEIGHT = 180, LEFT = 44, BOTTOM = 20;
const query = location.search;
const find = id => document.getElementById(id);
const points = new Map();
let latest = [], chosen = '';

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
const ms = ns => (ns / 1e6).toFixed(ns < 1e7 ? 1 : 0) + ' ms';

// Both ways over one time axis, in `unit` of the values.
function chart(place, name, series, unit) {
  const top = Math.max(1e-9, ...series.flatMap(one => one.map(([, value]) => value / unit))) * 1.08;
  const end = Math.max(0, ...series.map(one => one.length ? one[one.length - 1][0] : 0));
  const x = at => LEFT + (WIDTH - LEFT - 70) * (1 - (end - at) / KEPT);
  const y = value => (HEIGHT - BOTTOM) * (1 - value / unit / top) + 4;
  const made = node('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT + 6}`, role: 'img' }, node('title', {}, name));
  for (const part of [0, .5, 1]) {
    const at = y(top * unit * part);
    made.append(node('line', { class: 'grid', x1: LEFT, x2: WIDTH - 70, y1: at, y2: at }));
    const digits = top < 1 ? 2 : top < 20 ? 1 : 0;
    made.append(node('text', { x: LEFT - 6, y: at + 4, 'text-anchor': 'end' }, (top * part).toFixed(digits)));
  }
  for (const minutes of [0, 2, 4, 6, 8, 10]) {
    const label = minutes ? `-${minutes} min` : 'now';
    made.append(node('text', { x: x(end - minutes * 60), y: HEIGHT + 4, 'text-anchor': 'middle' }, label));
  }
  const ways = [['down', 'download'], ['up', 'upload']];
  const ends = series.map(one => one.length ? y(one[one.length - 1][1]) + 4 : 0);
  if (Math.abs(ends[0] - ends[1]) < 14) ends[0] < ends[1] ? (ends[0] -= 7, ends[1] += 7) : (ends[0] += 7, ends[1] -= 7);
  series.forEach((one, way) => {
    if (!one.length) return;
    made.append(node('polyline', { class: ways[way][0], points: one.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ') }));
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
  const names = latest.map(one => one.name);
  if (!names.includes(chosen)) chosen = names[0] || '';
  const select = find('interface');
  if ([...select.options].map(option => option.value).join() !== names.join()) {
    select.replaceChildren(...names.map(name => node('option', { value: name }, name)));
  }
  select.value = chosen;
  const shown = latest.find(one => one.name === chosen);
  if (!shown) {
    find('words').replaceChildren(node('li', {}, 'nothing is shaped here: `simnel up` begins'));
    return;
  }
  const view = shown.view;
  find('words').replaceChildren(...view.words.map(text => node('li', {}, text)));
  const kept = points.get(chosen) || [];
  const series = key => [0, 1].map(way => kept.map(point => [point.at_s, point[key][way]]));
  chart(find('rate'), 'Rate of the last ten minutes', series('rate_bps'), 1e6);
  chart(find('delay'), 'Added latency of the last ten minutes', series('p99_ns'), 1e6);
  table(find('hosts'), ['Host', 'Download', 'Upload', 'Flows', 'Queued', 'p99', 'Drops', 'Marks'],
    view.hosts.map(host => [host.name || host.address, rate(host.download_bps), rate(host.upload_bps),
      `${host.active_flows} of ${host.flows}`, host.backlog_packets, ms(host.sojourn_p99_ns), host.drops, host.marks]));
  table(find('tiers'), ['Tier', 'Rate', 'Queued', 'Delay', 'Drops', 'Marks'],
    view.lines.flatMap(line => line.tiers.map(tier => [`${line.direction} ${tier.name}`, rate(tier.rate_bps),
      `${tier.backlog_bytes} B`, ms(tier.delay_ns), tier.drops, tier.marks])));
  const wanted = find('filter').value.toLowerCase();
  const rows = view.flows.map(flow => [`${flow.host || ''} ${endOf(flow, 'source')} → ${endOf(flow, 'destination')}`.trim(),
    { 6: 'TCP', 17: 'UDP', 1: 'ICMP', 58: 'ICMP' }[flow.protocol] || flow.protocol, rate(flow.rate_bps), flow.backlog_packets,
    ms(flow.sojourn_ns), flow.drops, flow.class || '']);
  table(find('flows'), ['Flow', 'Protocol', 'Rate', 'Queued', 'Wait', 'Drops', 'Tier'],
    rows.filter(cells => cells.join(' ').toLowerCase().includes(wanted)));
}

function take(message) {
  latest = message.interfaces;
  for (const { name, point } of latest) {
    const kept = points.get(name) || [];
    if (point && (!kept.length || kept[kept.length - 1].at_s !== point.at_s)) kept.push(point);
    points.set(name, kept.slice(-KEPT));
  }
  find('state').textContent = 'live';
  draw();
}

async function begin() {
  try {
    const answer = await fetch('api/v1/history' + query);
    if (!answer.ok) throw new Error((await answer.json()).error);
    for (const one of (await answer.json()).interfaces) points.set(one.name, one.points);
  } catch (error) {
    find('state').textContent = error.message;
    return;
  }
  const events = new EventSource('api/v1/events' + query);
  events.onmessage = event => take(JSON.parse(event.data));
  events.onerror = () => { find('state').textContent = 'the connection is lost; trying again …'; };
}
find('interface').addEventListener('change', event => { chosen = event.target.value; draw(); });
find('filter').addEventListener('input', draw);
if (query) document.querySelectorAll('footer a').forEach(link => { link.href += query; });
begin();
