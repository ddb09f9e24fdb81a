package segments

import "sync"

// Cache keeps decoded pages of segment files in memory, up to a number of bytes. It evicts by
// CLOCK: a page that was not used since the hand last passed goes, so that one long scan does not
// push out what queries use again and again. Pages are immutable and owned by the garbage
// collector: a page that was evicted stays valid for whoever holds it.
//
// Safe for concurrent use; the zero value and nil cache nothing.
type Cache struct {
	shards []cacheShard
}

const (
	cacheShards = 16
	// entryOverhead is what an entry costs besides the page: map slot, ring slot, slice header.
	entryOverhead = 128
)

type cacheKey struct {
	file   uint64
	offset uint64
}

type cacheEntry struct {
	key  cacheKey
	page []byte
	used bool
}

type cacheShard struct {
	mu     sync.Mutex
	limit  int64
	bytes  int64
	byKey  map[cacheKey]int // position in ring
	ring   []cacheEntry
	free   []int
	hand   int
	hits   uint64
	misses uint64
	_      [64]byte // keeps the locks of two shards on different cache lines
}

// NewCache makes a cache of at most size bytes, pages and their bookkeeping included.
func NewCache(size int64) *Cache {
	c := &Cache{shards: make([]cacheShard, cacheShards)}
	for i := range c.shards {
		c.shards[i].limit = size / cacheShards
		c.shards[i].byKey = make(map[cacheKey]int)
	}
	return c
}

func (c *Cache) shard(k cacheKey) *cacheShard {
	h := (k.file*0x9e3779b97f4a7c15 ^ k.offset) * 0xbf58476d1ce4e5b9
	return &c.shards[h>>60&(cacheShards-1)]
}

func (c *Cache) get(k cacheKey) []byte {
	if c == nil || len(c.shards) == 0 {
		return nil
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.byKey[k]; ok {
		s.ring[i].used = true
		s.hits++
		return s.ring[i].page
	}
	s.misses++
	return nil
}

func (c *Cache) put(k cacheKey, page []byte) {
	if c == nil || len(c.shards) == 0 {
		return
	}
	cost := int64(cap(page)) + entryOverhead
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.byKey[k]; ok || cost > s.limit {
		return
	}
	for s.bytes+cost > s.limit {
		s.evict()
	}
	s.bytes += cost
	e := cacheEntry{key: k, page: page}
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.ring[i], s.byKey[k] = e, i
		return
	}
	s.byKey[k] = len(s.ring)
	s.ring = append(s.ring, e)
}

// evict drops one page; there is one, since bytes is above zero.
func (s *cacheShard) evict() {
	for {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		e := &s.ring[s.hand]
		switch {
		case e.page == nil: // a free slot
		case e.used:
			e.used = false
		default:
			s.bytes -= int64(cap(e.page)) + entryOverhead
			delete(s.byKey, e.key)
			*e = cacheEntry{}
			s.free = append(s.free, s.hand)
			s.hand++
			return
		}
		s.hand++
	}
}

// Drop forgets all pages, as after a restart. For tests and measurements.
func (c *Cache) Drop() {
	if c == nil {
		return
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.bytes, s.hand, s.ring, s.free = 0, 0, nil, nil
		clear(s.byKey)
		s.mu.Unlock()
	}
}

// CacheStats are counters since the cache was made.
type CacheStats struct {
	Bytes, Pages int64
	Hits, Misses uint64
}

// Stats reads the counters.
func (c *Cache) Stats() CacheStats {
	var st CacheStats
	if c == nil {
		return st
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		st.Hits += s.hits
		st.Misses += s.misses
		st.Bytes += s.bytes
		st.Pages += int64(len(s.byKey))
		s.mu.Unlock()
	}
	return st
}
