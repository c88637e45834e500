"""One conversation in which an assistant answers, and thirty questions about what the assistant said.

Written for this project. Users talk about the same things before and after, so that a prior for what users say, which
helps elsewhere, would sink the answers if it were too strong.
"""

from __future__ import annotations

EXCHANGES: tuple[tuple[str, str, str], ...] = (
    (
        "I need a quiet hotel in Lisbon for May.",
        "The Casa Balthazar in Chiado is quiet and has a small pool; ask for a room to the garden.",
        "Which hotel in Lisbon did you recommend?",
    ),
    (
        "My sourdough stays flat.",
        "Let it rise until it has grown by half, about six hours at 22 degrees, and bake it at 240 degrees with steam.",
        "At how many degrees did you tell me to bake the sourdough?",
    ),
    (
        "Which lens for portraits on my camera?",
        "A prime of 85 mm with f/1.8 gives soft backgrounds without weighing much.",
        "What lens did you suggest for portraits?",
    ),
    (
        "How do I get red wine out of a white shirt?",
        "Blot it, pour salt on it, and after an hour rinse with cold sparkling water before washing.",
        "What did you say against wine stains on the shirt?",
    ),
    (
        "My knee hurts after running.",
        "That sounds like runner's knee; rest for ten days, then strengthen the hip with clamshells.",
        "Which exercise did you recommend for my knee?",
    ),
    (
        "I want to read Russian novels, where do I begin?",
        "Begin with The Death of Ivan Ilyich: it is short, and it has all of Tolstoy in it.",
        "With which Russian book did you tell me to begin?",
    ),
    (
        "Postgres is slow on my orders table.",
        "The plan shows a sequential scan; create a partial index on orders (customer_id) where status = 'open'.",
        "Which index did you propose for the orders table?",
    ),
    (
        "What should I plant on a shady balcony?",
        "Ferns, fuchsias and hostas do well there; water them in the morning.",
        "What plants did you list for the shady balcony?",
    ),
    (
        "How long may I keep cooked rice?",
        "One day in the fridge, cooled within an hour; reheat it only once.",
        "How long did you say cooked rice keeps?",
    ),
    (
        "I have to give a toast at my sister's wedding.",
        "Keep it to three minutes, tell the story of the broken canoe, and end with her name.",
        "Which story did you advise for the wedding toast?",
    ),
    (
        "Which visa do I need for Vietnam?",
        "As a German citizen you may stay 45 days without one; beyond that the e-visa costs 25 dollars.",
        "What did you say the e-visa for Vietnam costs?",
    ),
    (
        "My cat scratches the sofa.",
        "Put a sisal post beside the sofa and rub it with valerian.",
        "What did you tell me to rub the cat's post with?",
    ),
    (
        "How should I name the branch for the billing fix?",
        "Call it fix/billing-rounding and reference ticket 4417 in the commit.",
        "What branch name did you give me for the billing fix?",
    ),
    (
        "Is it worth repairing my dishwasher?",
        "If the pump fails, yes: the part costs 38 euros and is changed with two screws.",
        "What did you say the dishwasher pump costs?",
    ),
    (
        "Give me a mnemonic for the planets.",
        "My very eager mule just served us noodles.",
        "What was your mnemonic for the planets?",
    ),
    (
        "How do I pay less tax as a freelancer?",
        "Set aside a third, deduct the home office, and consider the lump sum of 1,260 euros a year.",
        "Which lump sum did you mention for the home office?",
    ),
    (
        "What shall I cook for eight vegetarians?",
        "A lasagne with pumpkin and sage, made the day before.",
        "Which dish did you suggest for the vegetarians?",
    ),
    (
        "Which board game for two evenings a week?",
        "Try Azul first; if you like it longer, Spirit Island.",
        "Which board game did you tell us to try first?",
    ),
    (
        "How can I sleep better?",
        "No screens after ten, the room at 18 degrees, and the same hour every morning.",
        "How cold should the bedroom be, by your advice?",
    ),
    (
        "My code leaks memory.",
        "The listeners in useEffect are never removed: return a cleanup function that calls removeEventListener.",
        "What did you say causes the memory leak?",
    ),
    (
        "Where can I see puffins?",
        "On the island of Skomer, from April to late July; book the boat at Martin's Haven.",
        "On which island did you say puffins live?",
    ),
    (
        "What is a fair price for the used bike?",
        "With that mileage I would offer 450 and go up to 520.",
        "Up to what price for the bike did you advise me to go?",
    ),
    (
        "How do I start learning the cello at forty?",
        "Rent one for 30 a month, and find a teacher who uses the Suzuki books.",
        "Which teaching books did you recommend for the cello?",
    ),
    (
        "Explain the offside rule in one sentence.",
        "Offside is who is nearer to the goal than the ball and the second-last opponent when it is played.",
        "How did you explain the offside rule?",
    ),
    ("推荐一家杭州的餐馆吧", "可以去龙井路的绿茶山庄，招牌是石锅豆腐。", "你推荐的杭州餐馆招牌菜是什么？"),
    ("孩子发烧三十八度怎么办", "先多喝水、少穿一点，超过三十八度五再用布洛芬。", "你说多少度以上才用布洛芬？"),
    ("想学做红烧肉", "先焯水，再用冰糖炒色，小火炖一个半小时。", "你讲的红烧肉要炖多久？"),
    ("周末去哪里爬山", "北高峰人少，从灵隐那边上去大约一小时。", "你建议周末爬哪座山？"),
    ("面试要准备什么", "准备三个项目故事，用背景、任务、行动、结果的顺序来讲。", "你建议面试的故事按什么顺序讲？"),
    (
        "房贷选等额本息还是等额本金",
        "现金流紧就选等额本息，想少付利息选等额本金，差额大约十一万。",
        "你说两种房贷利息相差多少？",
    ),
)
"""What the user asks, what the assistant answers, and what is asked about that answer later."""

CHATTER = (
    "Thanks, I will think about that.",
    "By the way, the weather is awful today.",
    "I talked with my sister about it again.",
    "好的，谢谢",
    "The hotel, the bike and the sofa are all on my list now.",
    "I still have to cook, to pay the tax and to book the boat.",
)
"""What users say in between."""
