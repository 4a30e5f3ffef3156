/* Linux's sfb, and the hashes under which it counts a packet in either set of bins. */
#include "net/sched/sch_sfb.c"

void oracle_sfb_hashes(struct Qdisc *qdisc, struct sk_buff *skb, unsigned *first, unsigned *second)
{
	struct sfb_sched_data *q = qdisc_priv(qdisc);

	*first = skb_get_hash_perturb(skb, &q->bins[0].perturbation);
	*second = skb_get_hash_perturb(skb, &q->bins[1].perturbation);
}
