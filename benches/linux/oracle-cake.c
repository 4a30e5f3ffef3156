/* Linux's cake, and where the packet that it gave out last had stood. */
#include "net/sched/sch_cake.c"

#include "oracle.h"

void oracle_cake_place(struct Qdisc *qdisc, const struct sk_buff *skb, struct place *place)
{
	struct cake_sched_data *q = qdisc_priv(qdisc);

	place->tin = q->cur_tin;
	place->flow = q->cur_flow;
	place->length = get_cobalt_cb(skb)->adjusted_len;
}
