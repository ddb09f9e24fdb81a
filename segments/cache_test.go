package segments

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
)

// A page comes back as it was put, until it is evicted; the cache never holds more than its size; counters
// say what happened.
func TestCacheKeepsItsLimit(t *testing.T) {
	const size = 1 << 20
	c := NewCache(size)
	page := func(i uint64) []byte { return bytes.Repeat([]byte{byte(i)}, 500+int(i%7)*900) }
	rng := rand.New(rand.NewPCG(3, 3))
	hits, misses := uint64(0), uint64(0)
	for range 20000 {
		i := rng.Uint64N(1000)
		k := cacheKey{i % 3, i}
		got := c.get(k)
		switch {
		case got == nil:
			misses++
			c.put(k, page(i))
		case !bytes.Equal(got, page(i)):
			t.Fatalf("page %d comes back changed", i)
		default:
			hits++
		}
		if st := c.Stats(); st.Bytes > size || st.Hits != hits || st.Misses != misses {
			t.Fatalf("%+v after %d hits and %d misses, limit %d", st, hits, misses, size)
		}
	}
	if hits == 0 || c.Stats().Pages == 0 {
		t.Fatal("nothing was kept")
	}
	c.Drop()
	if st := c.Stats(); st.Bytes != 0 || st.Pages != 0 {
		t.Fatalf("%+v after Drop", st)
	}
	if c.get(cacheKey{0, 0}) != nil {
		t.Fatal("a page outlives Drop")
	}
}

// A scan does not push out what is used again and again.
func TestCacheResistsScans(t *testing.T) {
	c := NewCache(cacheShards * 40 * 1024)
	hot := make([]cacheKey, 40)
	for i := range hot {
		hot[i] = cacheKey{1, uint64(i) * 4096}
		c.put(hot[i], make([]byte, 1024))
	}
	for i := range uint64(5000) {
		for _, k := range hot {
			c.get(k)
		}
		c.put(cacheKey{2, i * 4096}, make([]byte, 1024))
	}
	for _, k := range hot {
		if c.get(k) == nil {
			t.Fatalf("page %v is gone", k)
		}
	}
}

// A page too large for the cache is not kept, and a nil cache keeps nothing.
func TestCacheOfNothing(t *testing.T) {
	c := NewCache(cacheShards * 1000)
	c.put(cacheKey{1, 1}, make([]byte, 2000))
	var none *Cache
	none.put(cacheKey{1, 1}, make([]byte, 10))
	if c.get(cacheKey{1, 1}) != nil || none.get(cacheKey{1, 1}) != nil || new(Cache).get(cacheKey{1, 1}) != nil {
		t.Fatal("a page was kept")
	}
}

func TestCacheConcurrentUse(t *testing.T) {
	c := NewCache(64 << 10)
	var group sync.WaitGroup
	for g := range uint64(4) {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(g, 1))
			for range 5000 {
				k := cacheKey{0, rng.Uint64N(200)}
				if p := c.get(k); p == nil {
					c.put(k, []byte{byte(k.offset)})
				} else if p[0] != byte(k.offset) {
					t.Errorf("page %d comes back as %d", k.offset, p[0])
				}
			}
		})
	}
	group.Wait()
}
