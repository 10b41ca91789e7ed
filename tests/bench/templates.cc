// A file with many templates, to keep a C++ compiler busy.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

template <int N> struct tower {
	std::map<std::string, std::tuple<int, double, std::array<char, N + 1>>> floor;
	tower<N - 1> below;
	int height() const { return below.height() + (floor.empty() ? 1 : 2); }
};
template <> struct tower<0> {
	int height() const { return 0; }
};

template <class T> std::vector<T> sorted(std::set<T> in)
{
	std::vector<T> out(in.begin(), in.end());
	std::sort(out.begin(), out.end(), std::greater<T>());
	return out;
}

int main()
{
	tower<24> t;
	std::unordered_map<std::string, std::shared_ptr<std::function<int(int)>>> f;
	f["twice"] = std::make_shared<std::function<int(int)>>([](int x) { return 2 * x; });
	std::regex r("([a-z]+)=([0-9]+)");
	std::smatch m;
	std::string s = "height=24";
	std::regex_match(s, m, r);
	std::cout << t.height() << (*f["twice"])(4) << m[1] << sorted<int>({ 1, 2, 3 }).size()
		  << sorted<std::string>({ "a", "b" })[0] << std::endl;
	return 0;
}
