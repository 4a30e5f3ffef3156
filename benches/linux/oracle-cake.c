/* Linux's cake, and where the packet that it gave out last had stood. */
#include "net/sched/sch_cake.c"

void oracle_cake_place(struct Qdisc *qdisc, const struct sk_buff *skb, unsigned *tin,
		       unsigned *flow, unsigned *length)
{
	struct cake_sched_data *q = qdisc_priv(qdisc);

	*tin = q->cur_tin;
	*flow = q->cur_flow;
	*length = get_cobalt_cb(skb)->adjusted_len;
}
