package base

import (
	"context"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// TakeOne takes one request of a class out of the bucket of something that is no key. RATE_LIMITED, with the refusal's words.
func (p *Base) TakeOne(ctx context.Context, class ratelimit.Class, of, refusal string) error {
	d, err := p.Admissions.Take(ctx, string(class)+"/"+of, p.Limits[class], p.Clock.Now())
	if err != nil || d.Allowed {
		return err
	}
	return tryLater(fault.RateLimited, d.RetryAfter, refusal)
}
