package cluster

import "time"

// LimitStarts makes Start give up earlier than after StartLimit.
func (p *Postgres) LimitStarts(limit time.Duration) { p.limit = limit }
