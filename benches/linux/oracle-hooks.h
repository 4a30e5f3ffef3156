/* Before each discipline of the oracle: an acknowledgement that cake's filter takes out is told
 * from a drop, which without tracing is the same call. */
#include <linux/skbuff.h>

void oracle_consumed(struct sk_buff *skb);
#define consume_skb oracle_consumed
