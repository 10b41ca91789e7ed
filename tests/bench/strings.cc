// A program of string manipulations with pauses: two threads build strings, vectors and maps of
// strings, join and split and sort them, and sleep in between as if for input. About 4 seconds and 4
// million allocations, such that heaptrack's price is about what was published for such a program: 1.85
// times. Its one argument scales that, in percent.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

class random_words {
public:
	explicit random_words(uint32_t seed) : state(seed) {}
	uint32_t next()
	{
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		return state;
	}
	std::string word()
	{
		std::string s;
		for (uint32_t n = 3 + next() % 30; n; n--)
			s += static_cast<char>('a' + next() % 26);
		return s;
	}

private:
	uint32_t state;
};

using strings = std::vector<std::string>;

std::string join(const strings &words, const std::string &between)
{
	std::string all;
	for (const std::string &w : words)
		all += (all.empty() ? std::string() : between) + w;
	return all;
}

strings split(const std::string &line, char between)
{
	strings words;
	std::istringstream in(line);
	for (std::string w; std::getline(in, w, between);)
		words.push_back(w);
	return words;
}

struct index_of {
	std::map<std::string, strings> by_word;
	std::unordered_map<std::string, std::shared_ptr<std::string>> known;

	void add(const std::string &line)
	{
		for (const std::string &w : split(line, ' ')) {
			by_word[w.substr(0, 2)].push_back(w);
			known.emplace(w, std::make_shared<std::string>(line.substr(0, 60)));
		}
	}
	size_t report() const
	{
		size_t n = 0;
		for (const auto &entry : by_word) {
			strings sorted = entry.second;
			std::sort(sorted.begin(), sorted.end());
			n += join(sorted, ", ").size() + known.count(entry.first);
		}
		return n;
	}
};

size_t work(uint32_t seed, int lines)
{
	random_words random(seed);
	index_of index;

	for (int i = 0; i < lines; i++) {
		strings words;
		for (int k = 0; k < 12; k++)
			words.push_back(random.word());
		index.add(join(words, " "));
	}
	return index.report();
}

void thread(uint32_t seed, int turns, size_t *ret)
{
	for (int i = 0; i < turns; i++) {
		*ret += work(seed + static_cast<uint32_t>(i), 120);
		std::this_thread::sleep_for(std::chrono::milliseconds(25));
	}
}

} // namespace

int main(int argc, char **argv)
{
	int turns = 130 * (argc > 1 ? atoi(argv[1]) : 100) / 100;
	size_t sums[2] = {0, 0};
	std::thread other(thread, 1u, turns, &sums[0]);

	thread(1000u, turns, &sums[1]);
	other.join();
	printf("%zu\n", sums[0] + sums[1]);
	return 0;
}
