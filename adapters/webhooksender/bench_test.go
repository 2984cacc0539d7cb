package webhooksender

import (
	"testing"
)

// BenchmarkSend delivers to one TLS receiver on loopback, as many at a time as there are processors. Both ends run here.
func BenchmarkSend(b *testing.B) {
	r := receive(b, nil, status(204))
	s := local(b, 0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if o, err := s.Send(b.Context(), request(r.URL)); err != nil || o.Error != "" {
				b.Errorf("%+v, %v", o, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}
