'use strict';
'require form';
'require fs';
'require tools.widgets as widgets';
'require view';

// Settings of /etc/config/simnel, of which /etc/init.d/simnel makes the daemon's file, and what runs.
return view.extend({
	load: function () {
		return L.resolveDefault(fs.exec('/usr/bin/simnel', ['show', '-s']), {});
	},

	render: function (shown) {
		const map = new form.Map('simnel', _('Simnel'),
			_('Keeps the delay of a line low while it is full. `simnel check` in a shell says what is in the way.'));
		const section = map.section(form.TypedSection, 'interface', _('Lines'));
		section.addremove = true;
		section.tab('line', _('Line'));
		section.tab('more', _('More'));

		let option = section.taboption('line', form.Flag, 'enabled', _('Shaped'));
		option.default = '1';
		option.rmempty = false;

		option = section.taboption('line', widgets.DeviceSelect, 'device', _('Device'),
			_('The one that leads to the Internet.'));
		option.rmempty = false;

		option = section.taboption('line', form.Value, 'download', _('Download'),
			_('A little less than the line carries. Without it, what arrives passes as it is.'));
		option.placeholder = '50mbit';
		option = section.taboption('line', form.Value, 'upload', _('Upload'));
		option.placeholder = '10mbit';

		option = section.taboption('line', form.Value, 'qdisc', _('Discipline'),
			_('Words of `tc`, as in `man tc-cake`.'));
		option.placeholder = 'cake diffserv4';

		option = section.taboption('line', form.Flag, 'autorate', _('Rates follow the line'),
			_('For LTE, satellites, cable: rates are ranges then, such as 10mbit..80mbit.'));
		option = section.taboption('line', form.DynamicList, 'reflectors', _('Reflectors'),
			_('Hosts that are asked for echoes; without any, public resolvers.'));
		option.depends('autorate', '1');

		option = section.taboption('more', form.ListValue, 'backend', _('Backend'));
		option.value('', _('the daemon'));
		option.value('kernel', _('the kernel'));
		option.value('auto', _('the best that is there'));
		section.taboption('more', form.Value, 'download_qdisc', _('Discipline of the download'));
		section.taboption('more', form.Value, 'upload_qdisc', _('Discipline of the upload'));
		option = section.taboption('more', form.Value, 'lanes', _('Lanes'),
			_('Threads that share a rate, each on a core.'));
		option.datatype = 'range(1, 4)';
		section.taboption('more', form.Value, 'mark_mask', _('Bits of the packet mark'),
			_('Two, such as 0x30000000; without them, two that no rule uses.'));
		option = section.taboption('more', form.Value, 'realtime', _('Priority'),
			_('Under SCHED_FIFO; 0 for none.'));
		option.datatype = 'range(0, 98)';
		option = section.taboption('more', form.Value, 'queue_length', _('Packets that the kernel keeps'));
		option.datatype = 'range(256, 262144)';

		return map.render().then((node) => E([], [
			node,
			E('h3', {}, _('What runs')),
			E('pre', {}, shown.stdout || _('nothing')),
		]));
	},
});
